// servecap: every number of a plan as formula, inputs and source
// SPDX-License-Identifier: Apache-2.0
//
// One line a number, in the order of the stages: card, GPU, weights, cache, budget, pool, verdict, speed,
// cost, break-even. The formulas are those of the stage's own header.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/memory/weights.hpp>
#include <servecap/plan/plan.hpp>
#include <servecap/report/page.hpp>
#include <servecap/report/text.hpp>

namespace servecap {

/// One number, how it came about and where its inputs are from.
struct Explanation {
    std::string stage, name, value, formula;
    Basis basis = Basis::exact;
    std::string source;
};

/// Every number of a plan.
inline std::vector<Explanation> explain_plan(Plan const& p) {
    std::vector<Explanation> out;
    std::string stage;
    auto const add = [&](std::string name, std::string value, Basis basis, std::string formula, std::string source = {}) {
        out.push_back({stage, std::move(name), std::move(value), std::move(formula), basis, std::move(source)});
    };
    Model const& m = *p.model;
    StartPlan const& f = p.fit;
    StartPlan const& alone = p.blind ? *p.blind : p.fit;
    Gpu const& g = p.gpus.gpu;
    Basis const card = m.is_inferred() ? Basis::inferred : Basis::exact;
    Basis const worked = f.basis == Basis::measured ? Basis::measured : Basis::calibrated;

    stage = "Model";
    add("parameters", grouped(total_params(m).value()), card, "sum of the shapes of every tensor: trunk, embedding and head; no draft, tower or table", m.source);
    add("active parameters", grouped(active_params(m).value()), card, "the same with top-k of the routed experts");
    add("context", grouped(m.max_context.value()) + " tokens", card, "max_position_embeddings of the config");
    auto const stored = stored_bytes(m);
    for (int c = 0; c < kTensorClasses; ++c) {
        Bytes const b = stored.by_class[static_cast<std::size_t>(c)];
        if (b.value() > 0)
            add(std::string{to_string(static_cast<TensorClass>(c))}, gb_text(b, 2), card,
                fmt::format("{} B in {}", grouped(b.value()), to_string(m.quant[static_cast<TensorClass>(c)].format)));
    }
    if (m.checkpoint_bytes) add("files on disk", gb_text(*m.checkpoint_bytes, 1), Basis::measured, "published size of the checkpoint");

    stage = "GPU";
    add("printed", g.memory_printed + " GB", Basis::measured, "the vendor's figure, GB or GiB by vendor", g.source_url);
    if (g.memory_reported) add("reported", gib_text(*g.memory_reported, 2), Basis::measured, fmt::format("{} MiB by the vendor's tool", grouped(g.memory_reported->value() / 1048576)));
    add("visible", gib_text(g.visible, 2), g.visible_is_estimate ? Basis::calibrated : Basis::measured, "total that the runtime can allocate from; engines budget with it");
    if (g.bandwidth) add("memory bandwidth", grouped(g.bandwidth->value() / 1e9, 0) + " GB/s", Basis::measured, "nominal");
    add("scale-up domain", grouped(static_cast<std::int64_t>(g.scaleup_domain)) + " GPUs", Basis::measured, g.scaleup_link);

    stage = "Layout";
    add("layout", layout_name(p.layout), Basis::exact,
        fmt::format("tp {} x pp {} x dp {} x {} replicas = {} GPUs; {}", p.layout.tp, p.layout.pp, p.layout.dp, p.layout.replicas, p.layout.gpus(), p.layout_reason),
        p.layout_source);
    add("weights a replica", gb_text(alone.weights_total, 1), card, "tensor by tensor, copied or cut by its shard rule");
    add("weights a GPU", gib_text(f.weights, 2), f.basis == Basis::measured ? Basis::measured : card,
        p.blind ? fmt::format("measured; the shapes give {} on the fullest rank", gib_text(alone.weights, 2)) : "the fullest rank", p.blind ? p.measured_source : std::string{});
    if (f.host_bytes.value() > 0) add("in host memory", gib_text(f.host_bytes, 2), card, "lookup tables that the engine keeps off the GPU, a replica");

    stage = "KV cache and state, on one GPU";
    add("a token", bytes_text(f.kv_per_token), card, fmt::format("{} B: growing rows of every layer in {}", grouped(f.kv_per_token.value()), f.kv_cache_dtype));
    if (f.fixed_per_sequence.value() > 0) add("windows a sequence", bytes_text(f.fixed_per_sequence), card, fmt::format("{} B once the windows are full", grouped(f.fixed_per_sequence.value())));
    if (f.state_per_sequence.value() > 0) add("state a sequence", bytes_text(f.state_per_sequence), card, fmt::format("{} B: recurrent state and convolution tail", grouped(f.state_per_sequence.value())));

    stage = "Budget of one GPU";
    add("may use", gib_text(alone.budget.requested, 2), Basis::exact, fmt::format("ceil({} x {:.2f})", gib_text(g.visible, 2), alone.budget.utilization), "rules of " + std::string{to_string(p.planned.engine)} + " " + f.rules_version);
    add("activations", gib_text(alone.budget.activation, 2), Basis::calibrated, fmt::format("peak of a profile run of {} tokens; model fitted to start-up logs", grouped(f.max_batched_tokens.value())));
    add("outside of torch", gib_text(alone.budget.non_torch, 2), Basis::calibrated, "CUDA context, NCCL; model fitted to start-up logs");
    add("CUDA graphs", gib_text(alone.budget.cuda_graph, 2), Basis::calibrated, "estimate that this version subtracts; model fitted to start-up logs");
    add("pool", gib_text(f.pool, 2), worked,
        p.blind ? fmt::format("measured; the model alone gives {} = may use - weights - activations - outside - graphs", gib_text(alone.pool, 2))
                : "may use - weights - activations - outside - graphs",
        p.blind ? p.measured_source : std::string{});

    stage = "What the pool holds";
    add("block", grouped(f.block_tokens.value()) + " tokens", Basis::exact, fmt::format("{} B a block over all layers and groups", grouped(f.bytes_per_block.value())));
    add("blocks", grouped(f.num_blocks), worked, "floor(pool / bytes a block), smallest over ranks");
    add("blocks of one full request", grouped(f.blocks_per_max_request), Basis::exact, fmt::format("pages of a request of {} tokens in every group", grouped(f.max_model_len.value())));
    add("tokens", grouped(f.kv_tokens.value()), worked, "floor(blocks / blocks of one full request x max-model-len): what the engine logs", p.blind ? p.measured_source : std::string{});
    if (!p.blind && f.kv_tokens_low < f.kv_tokens_high)
        add("tokens, 80 % interval", grouped(f.kv_tokens_low.value()) + " to " + grouped(f.kv_tokens_high.value()), Basis::calibrated, "spread of the fitted memory models over start-up logs");
    if (p.blind) add("tokens, model alone", grouped(p.blind->kv_tokens.value()), card, fmt::format("{} to {} (80 %)", grouped(p.blind->kv_tokens_low.value()), grouped(p.blind->kv_tokens_high.value())));
    if (f.state_slots) add("state slots", grouped(*f.state_slots), worked, "blocks: each sequence needs one for its recurrent state; max-num-seqs must not exceed them");
    add("verdict", std::string{to_string(f.verdict)}, worked, f.engine_message);
    for (Mend const& x : p.mended) add("mended", x.flag + " " + x.value, x.basis, x.avoids);

    for (SpeedPoint const& s : p.speed) {
        stage = fmt::format("Speed at {}", count_text(s.concurrency.value(), "user", "users"));
        std::string source;
        for (Evidence const& e : s.evidence) source += (source.empty() ? "" : "; ") + e.source + (e.date.empty() ? "" : " " + e.date);
        add("resident", grouped(s.resident.value()), Basis::exact, "min(asked, max-num-seqs, KV room, state slots)");
        add("TPOT", fmt::format("{:.2f} ms", in_ms(s.tpot.value)), s.basis, fmt::format("80 %: {:.2f} to {:.2f} ms", in_ms(s.tpot.low), in_ms(s.tpot.high)), source);
        add("TTFT", fmt::format("{:.1f} ms", in_ms(s.ttft.value)), s.basis, fmt::format("80 %: {:.1f} to {:.1f} ms", in_ms(s.ttft.low), in_ms(s.ttft.high)), source);
        add("output tok/s", grouped(s.output.value.value(), 1), s.basis,
            s.basis == Basis::measured ? std::string{"as measured"} : fmt::format("0.978 x users / (TPOT + TTFT / OSL); 80 %: {} to {}", sig3(s.output.low.value()), sig3(s.output.high.value())), source);
        for (SpeedTerm const& t : s.decode_terms) add("decode: " + std::string{t.name}, fmt::format("{:.3f} ms", in_ms(t.time)), s.basis == Basis::roofline ? Basis::roofline : Basis::calibrated, t.formula);
        for (SpeedTerm const& t : s.prefill_terms) add("prefill: " + std::string{t.name}, fmt::format("{:.3f} ms", in_ms(t.time)), s.basis == Basis::roofline ? Basis::roofline : Basis::calibrated, t.formula);
    }

    stage = "Cost";
    if (p.cost.price) {
        PriceChoice const& c = *p.cost.price;
        add("price", usd_text(c.per_hour.value()) + " an hour", c.basis, detail::price_text(c), c.url);
        for (GpuPrice const& r : c.rows)
            add("  row", r.per_gpu ? usd_text(r.per_gpu->value()) + " a GPU-hour" : "", Basis::measured,
                fmt::format("{} {} {} ({})", r.provider, r.price_type, r.date, to_string(r.confidence)), r.url);
        for (CostPoint const& c2 : p.cost.by_concurrency)
            add(fmt::format("$/M output at {}", count_text(c2.concurrency.value(), "user", "users")), usd_text(c2.output_alone.value.value()), c2.basis,
                "price / (3600 x output tok/s) x 1e6");
        if (p.cost.setup_usd)
            add("setup", usd_text(p.cost.setup_usd->value.value()), p.cost.setup.basis,
                fmt::format("price x ({:.2f} s download + {:.2f} s start) / 3600", p.cost.setup.download.value.value(), p.cost.setup.start.value.value()), p.cost.setup.source);
    } else {
        add("price", "not known", Basis::assumed, p.cost.missing);
    }
    for (BreakEven const& b : p.break_even) {
        stage = "Break-even against " + b.against.model;
        add("self-hosted", usd_text(b.self_hosted.value()) + " a month", Basis::exact, "price x 730 h");
        add("API", usd_text(b.api_per_million_output.value()) + " per M output with its input", Basis::measured,
            fmt::format("r ((1 - h) {:.2f} + h {}) + {:.2f}", b.against.input.value(), b.against.cached_input_known ? fmt::format("{:.2f}", b.against.cached_input.value()) : "input price",
                        b.against.output.value()),
            b.against.url);
        add("volume", grouped(b.million_output, 1) + " M output a month", Basis::exact, "self-hosted month / API price; whole replicas");
        add("rate", grouped(b.output_rate.value(), 0) + " output tok/s", Basis::exact, "volume / (730 x 3600 s)");
        add("reachable", std::string{to_string(b.reachable)}, Basis::calibrated, b.reason);
    }
    return out;
}

} // namespace servecap
