// servecap: a plan as files that start it: Docker Compose and Kubernetes
// SPDX-License-Identifier: Apache-2.0
//
// The command is the plan's own; the numbers beside it follow from the plan: GPUs of a replica, host memory for tables
// kept there, processor cores, shared memory between the ranks, and how long a probe must wait (twice the high end of the
// predicted download and start). Assumed and said so in the file: 2 GiB of shared memory and 4 GiB of host memory a rank
// (torch, NCCL and the CUDA context of each process), 8 GiB for the API server. Cores: vLLM's documentation asks for one
// a GPU, one for the engine core of each data-parallel rank and one for the API server.
// A replica that spans nodes becomes a LeaderWorkerSet (leaderworkerset.x-k8s.io/v1); Compose runs on one host and
// refuses it.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <servecap/core/result.hpp>
#include <servecap/core/text.hpp>
#include <servecap/plan/plan.hpp>

namespace servecap {

/// What the user may choose of a deployment file.
struct DeployOptions {
    std::string image{}; ///< empty: the engine's own image of the modelled version
};

/// The numbers of one replica that a deployment file needs.
struct DeployNumbers {
    std::string name;                 ///< of the service: lower case, digits and '-'
    std::vector<std::string> command; ///< words, with host and port
    std::string image, image_note;
    std::int32_t port = 8000;
    std::int32_t gpus = 1, nodes = 1, replicas = 1; ///< GPUs of a replica; nodes that it spans
    std::int32_t cores = 0;
    Bytes shared_memory{}, host_memory{}, cache_volume{};
    std::int64_t startup_seconds = 0; ///< that a probe waits
    std::string startup_note;
    bool amd = false;
};

namespace detail::deploy {

/// The words of a shell command line with single and double quotes.
inline std::vector<std::string> words(std::string_view line) {
    std::vector<std::string> out;
    std::string word;
    char quote = 0;
    bool open = false;
    for (char c : line) {
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else
                word.push_back(c);
        } else if (c == '\'' || c == '"') {
            quote = c;
            open = true;
        } else if (c == ' ' || c == '\n' || c == '\t') {
            if (open || !word.empty()) out.push_back(std::move(word));
            word.clear();
            open = false;
        } else {
            word.push_back(c);
        }
    }
    if (open || !word.empty()) out.push_back(std::move(word));
    return out;
}

/// A YAML flow scalar in double quotes (JSON's rules, which YAML takes).
inline std::string quoted(std::string_view s) {
    std::string out = "\"";
    for (char c : s) {
        if (c == '"' || c == '\\') out.push_back('\\');
        if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            out.push_back(c);
    }
    return out + "\"";
}

/// One word of `sh -c`; words with $(NAME) or $NAME stay open for the shell.
inline std::string shell_word(std::string_view s) {
    if (!s.empty() && s.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%$") == std::string_view::npos)
        return std::string{s};
    std::string out = "'";
    for (char c : s) out += c == '\'' ? std::string{"'\\''"} : std::string{c};
    return out + "'";
}

/// A DNS label: lower case letters, digits and '-', at most 50 characters.
inline std::string dns_label(std::string_view id) {
    std::string out;
    for (char c : to_lower(id.substr(id.rfind('/') == std::string_view::npos ? 0 : id.rfind('/') + 1))) {
        bool const plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain)
            out.push_back(c);
        else if (!out.empty() && out.back() != '-')
            out.push_back('-');
    }
    out = out.substr(0, 50);
    while (!out.empty() && out.back() == '-') out.pop_back();
    if (out.empty() || (out.front() >= '0' && out.front() <= '9')) out.insert(0, "llm-");
    return out;
}

inline std::int64_t whole_gib(Bytes b) { return ceil_div(b.value(), std::int64_t{1} << 30); }

/// "0.33" -> "v0.33.0"; a version with letters or three parts stays.
inline std::string tag_of(std::string version) {
    if (version.empty()) return "latest";
    if (std::count(version.begin(), version.end(), '.') == 1 && version.find_first_not_of("0123456789.") == std::string::npos) version += ".0";
    return version;
}

inline bool has_option(std::vector<std::string> const& words, std::string_view name) {
    return std::any_of(words.begin(), words.end(), [&](std::string const& w) { return w == name || w.starts_with(std::string{name} + "="); });
}

inline void comment(std::string& out, std::string_view indent, std::string_view text) {
    std::string line{indent};
    line += "#";
    for (std::size_t at = 0; at < text.size();) {
        auto const end = std::min(text.find_first_of(" \n", at), text.size());
        if (line.size() + 1 + end - at > 118) {
            out += line + "\n";
            line = std::string{indent} + "#";
        }
        line += " " + std::string{text.substr(at, end - at)};
        at = end + 1;
    }
    out += line + "\n";
}

} // namespace detail::deploy

/// The numbers of a plan's deployment. Errors: bad_usage when the plan does not start (the message says why), or when
/// the command is empty.
inline Result<DeployNumbers> deploy_numbers(Plan const& p, DeployOptions const& o = {}) {
    namespace d = detail::deploy;
    if (!p.fit.starts || p.for_fix)
        return fail(ErrorCode::bad_usage, "the engine would not start: " + (p.as_asked.engine_message.empty() ? std::string{to_string(p.as_asked.verdict)} : p.as_asked.engine_message),
                    "--emit", p.as_asked.fixes.empty() ? "another layout or other GPUs" : p.as_asked.fixes.front().flag + " " + p.as_asked.fixes.front().value);
    if (p.command.empty()) return fail(ErrorCode::bad_usage, "the plan has no command", "--emit");
    DeployNumbers n;
    n.name = d::dns_label(p.model->id);
    n.command = d::words(p.command);
    n.amd = p.gpus.gpu.vendor == GpuVendor::amd;
    n.gpus = p.layout.gpus_per_replica();
    n.replicas = std::max(1, p.layout.replicas);
    n.nodes = static_cast<std::int32_t>(ceil_div(n.gpus, std::max(1, p.gpus.gpu.node_gpus)));
    std::string version = p.planned.version.empty() ? p.fit.rules_version : p.planned.version;
    version.erase(0, version.rfind(' ') + 1); // "SGLang 0.5.19"
    auto const add = [&](char const* name, std::string value) {
        if (d::has_option(n.command, name)) return;
        n.command.emplace_back(name);
        n.command.push_back(std::move(value));
    };
    add("--host", "0.0.0.0");
    switch (p.planned.engine) {
    case EngineKind::vllm: n.image = (n.amd ? "vllm/vllm-openai-rocm:v" : "vllm/vllm-openai:v") + d::tag_of(version); break;
    case EngineKind::sglang:
        n.image = "lmsysorg/sglang:v" + d::tag_of(version);
        n.port = 30000;
        break;
    case EngineKind::trtllm: n.image = "nvcr.io/nvidia/tensorrt-llm/release:" + d::tag_of(version); break;
    case EngineKind::llama_cpp:
        n.image = n.amd ? "ghcr.io/ggml-org/llama.cpp:server-rocm" : "ghcr.io/ggml-org/llama.cpp:server-cuda";
        n.port = 8080;
        if (n.command.front() == "llama-server" && o.image.empty()) n.command.front() = "/app/llama-server"; // not on the image's path
        break;
    }
    if (n.image.ends_with(":vlatest")) n.image.replace(n.image.size() - 7, 7, "latest");
    n.image_note = version.empty() ? "the image's tag is not pinned" : "memory and speed are those of version " + version + ": pin the tag that you test";
    if (!o.image.empty()) n.image = o.image;
    add("--port", std::to_string(n.port));
    std::int64_t const one_gib = std::int64_t{1} << 30;
    n.shared_memory = Bytes{2 * one_gib * n.gpus};
    n.host_memory = Bytes{(8 + 4 * static_cast<std::int64_t>(n.gpus)) * one_gib + p.fit.host_bytes.value()} + n.shared_memory;
    n.cores = n.gpus + std::max(1, p.layout.dp) + 1;
    // Files on disk: the tensors as loaded, with room for a second revision's index and the tokenizer.
    n.cache_volume = Bytes{(p.fit.weights_total.value() + p.fit.host_bytes.value()) / 10 * 11 + one_gib};
    SetupTime const& s = p.cost.setup;
    if (s.known && s.total.high.value() > 0) {
        n.startup_seconds = static_cast<std::int64_t>(std::ceil(std::max(s.total.high.value(), s.total.value.value()) * 2.0 / 60.0)) * 60;
        n.startup_note = fmt::format("predicted: {:.0f} s download and {:.0f} s start ({}); the probe waits twice the high end", s.download.value.value(),
                                     s.start.value.value(), to_string(s.basis));
    } else {
        n.startup_seconds = 3600;
        n.startup_note = "no start of this size is known: one hour is assumed";
    }
    return n;
}

/// A compose.yaml: one service a replica, each on its own GPUs. Errors: those of deploy_numbers, and bad_usage where a
/// replica spans nodes.
inline Result<std::string> compose_file(Plan const& p, DeployOptions const& o = {}) {
    namespace d = detail::deploy;
    auto made = deploy_numbers(p, o);
    if (!made) return tl::unexpected<Error>{made.error()};
    DeployNumbers const& n = *made;
    if (n.nodes > 1)
        return fail(ErrorCode::bad_usage, fmt::format("a replica of {} GPUs spans {} nodes; Compose runs on one host", n.gpus, n.nodes), "--emit", "--emit k8s");
    std::string out;
    d::comment(out, "", fmt::format("{} on {} x {}, {} ({}).", p.model->id, p.gpus.count, p.gpus.gpu.short_name, layout_name(p.layout), to_string(p.planned.engine)));
    d::comment(out, "", n.image_note + ".");
    if (std::int32_t const node = p.gpus.gpu.node_gpus; n.replicas * n.gpus > node && node > 0)
        d::comment(out, "", fmt::format("{} replicas of {} GPUs are more than one node of {} holds: start the others on other hosts.", n.replicas, n.gpus, node));
    out += "services:\n";
    for (std::int32_t i = 0; i < n.replicas; ++i) {
        std::string const suffix = n.replicas > 1 ? fmt::format("-{}", i) : "";
        out += "  " + n.name + suffix + ":\n    image: " + d::quoted(n.image) + "\n    entrypoint:\n";
        for (auto const& w : n.command) out += "      - " + d::quoted(w) + "\n";
        out += fmt::format("    ports:\n      - \"{}:{}\"\n", n.port + i, n.port);
        out += "    environment:\n      HF_TOKEN: \"${HF_TOKEN:-}\"\n";
        out += "    volumes:\n      - huggingface:/root/.cache/huggingface\n";
        d::comment(out, "    ", "Shared memory between the ranks: 2 GiB a GPU, assumed.");
        out += fmt::format("    shm_size: \"{}gb\"\n", d::whole_gib(n.shared_memory));
        if (n.amd) {
            out += "    devices:\n      - /dev/kfd\n      - /dev/dri\n    group_add:\n      - video\n    security_opt:\n      - seccomp=unconfined\n";
            std::string ids;
            for (std::int32_t g = 0; g < n.gpus; ++g) ids += (g == 0 ? "" : ",") + std::to_string(i * n.gpus + g);
            out.insert(out.rfind("    volumes:"), "      HIP_VISIBLE_DEVICES: " + d::quoted(ids) + "\n");
        }
        out += "    deploy:\n      resources:\n        reservations:\n";
        d::comment(out, "          ",
                   fmt::format("Host memory: 8 GiB for the server and 4 GiB a rank (assumed), {} GiB shared memory, {} GiB of tables kept on the host.",
                               d::whole_gib(n.shared_memory), d::whole_gib(p.fit.host_bytes)));
        out += fmt::format("          memory: {}G\n", static_cast<std::int64_t>(std::ceil(static_cast<double>(n.host_memory.value()) / 1e9)));
        if (!n.amd) {
            out += "          devices:\n            - driver: nvidia\n              device_ids: [";
            for (std::int32_t g = 0; g < n.gpus; ++g) out += (g == 0 ? "" : ", ") + d::quoted(std::to_string(i * n.gpus + g));
            out += "]\n              capabilities: [gpu]\n";
        }
        out += "    healthcheck:\n      test: [\"CMD-SHELL\", " +
               d::quoted(fmt::format("python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:{}/health')\" || curl -fsS http://127.0.0.1:{}/health", n.port,
                                     n.port)) +
               "]\n      interval: 10s\n      timeout: 5s\n      retries: 6\n";
        d::comment(out, "      ", n.startup_note + ".");
        out += fmt::format("      start_period: {}s\n", n.startup_seconds);
        out += "    restart: unless-stopped\n";
    }
    out += "volumes:\n  huggingface: {}\n";
    return out;
}

/// Kubernetes manifests: a volume claim for the files, a Deployment (or a LeaderWorkerSet where a replica spans nodes) and
/// a Service. Errors: those of deploy_numbers, and bad_usage for engines without a way over nodes.
inline Result<std::string> kubernetes_manifests(Plan const& p, DeployOptions const& o = {}) {
    namespace d = detail::deploy;
    auto made = deploy_numbers(p, o);
    if (!made) return tl::unexpected<Error>{made.error()};
    DeployNumbers n = std::move(*made);
    EngineKind const engine = p.planned.engine;
    bool const spans = n.nodes > 1;
    if (spans && engine != EngineKind::vllm && engine != EngineKind::sglang)
        return fail(ErrorCode::bad_usage, fmt::format("a replica of {} GPUs spans {} nodes, and no way over nodes is known for {}", n.gpus, n.nodes, to_string(engine)),
                    "--emit", "vllm or sglang, or a layout within a node");
    std::int32_t const pod_gpus = spans ? static_cast<std::int32_t>(ceil_div(n.gpus, n.nodes)) : n.gpus;
    std::int64_t const one_gib = std::int64_t{1} << 30;
    std::int64_t const shared = spans ? 2 * pod_gpus : d::whole_gib(n.shared_memory);
    std::int64_t const memory = spans ? ceil_div((8 + 4 * static_cast<std::int64_t>(pod_gpus)) * one_gib + p.fit.host_bytes.value() / n.nodes, one_gib) + shared
                                      : d::whole_gib(n.host_memory);
    std::int32_t const cores = spans ? pod_gpus + 2 : n.cores;
    std::string out;
    d::comment(out, "", fmt::format("{} on {} x {}, {} ({}).", p.model->id, p.gpus.count, p.gpus.gpu.short_name, layout_name(p.layout), to_string(engine)));
    d::comment(out, "", n.image_note + ".");
    if (Bytes const ram = p.gpus.gpu.node_ram.value_or(Bytes{0}); ram.value() > 0 && memory * one_gib > ram.value())
        d::comment(out, "", fmt::format("The pod asks for {} GiB of host memory; a usual node of {} GPUs has {} GiB.", memory, p.gpus.gpu.node_gpus, d::whole_gib(ram)));
    if (n.replicas > 1) d::comment(out, "", "Replicas share the volume: its class must allow ReadWriteMany, or give each its own.");
    out += fmt::format("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {0}-files\nspec:\n  accessModes:\n    - {1}\n  resources:\n    requests:\n"
                       "      storage: {2}Gi\n---\n",
                       n.name, n.replicas > 1 || spans ? "ReadWriteMany" : "ReadWriteOnce", d::whole_gib(n.cache_volume));

    auto const container = [&](std::string const& in, std::vector<std::string> const& command, bool serves) {
        std::string c = in + "- name: engine\n" + in + "  image: " + d::quoted(n.image) + "\n" + in + "  command:\n";
        for (auto const& w : command) c += in + "    - " + d::quoted(w) + "\n";
        c += in + "  env:\n" + in + "    - name: HF_TOKEN\n" + in + "      valueFrom:\n" + in + "        secretKeyRef:\n" + in + "          name: huggingface\n" + in +
             "          key: token\n" + in + "          optional: true\n";
        d::comment(c, in + "  ",
                   fmt::format("Cores: one a GPU, one an engine core, one for the server. Memory: 8 GiB for the server and 4 GiB a rank (assumed), {} GiB shared memory, "
                               "{} GiB of tables kept on the host.",
                               shared, d::whole_gib(p.fit.host_bytes) / (spans ? n.nodes : 1)));
        std::string const gpu = fmt::format("{}.com/gpu: {}", n.amd ? "amd" : "nvidia", pod_gpus);
        c += in + "  resources:\n" + in + "    requests:\n" + in + fmt::format("      cpu: {}\n", cores) + in + fmt::format("      memory: {}Gi\n", memory) + in + "      " + gpu +
             "\n" + in + "    limits:\n" + in + "      " + gpu + "\n";
        if (serves) {
            c += in + "  ports:\n" + in + "    - name: http\n" + in + fmt::format("      containerPort: {}\n", n.port);
            d::comment(c, in + "  ", n.startup_note + ".");
            std::string const get = in + "    httpGet:\n" + in + "      path: /health\n" + in + "      port: http\n";
            c += in + "  startupProbe:\n" + get + in + "    periodSeconds: 10\n" + in + fmt::format("    failureThreshold: {}\n", ceil_div(n.startup_seconds, std::int64_t{10}));
            c += in + "  readinessProbe:\n" + get + in + "    periodSeconds: 5\n" + in + "    failureThreshold: 3\n";
            c += in + "  livenessProbe:\n" + get + in + "    periodSeconds: 20\n" + in + "    failureThreshold: 6\n";
        }
        c += in + "  volumeMounts:\n" + in + "    - name: files\n" + in + "      mountPath: /root/.cache/huggingface\n" + in + "    - name: shm\n" + in + "      mountPath: /dev/shm\n";
        return c;
    };
    auto const volumes = [&](std::string const& in) {
        return in + "volumes:\n" + in + "  - name: files\n" + in + "    persistentVolumeClaim:\n" + in + fmt::format("      claimName: {}-files\n", n.name) + in + "  - name: shm\n" + in +
               "    emptyDir:\n" + in + "      medium: Memory\n" + in + fmt::format("      sizeLimit: {}Gi\n", shared);
    };
    if (!spans) {
        out += fmt::format("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {0}\n  labels:\n    app: {0}\nspec:\n  replicas: {1}\n  strategy:\n    type: Recreate\n"
                           "  selector:\n    matchLabels:\n      app: {0}\n  template:\n    metadata:\n      labels:\n        app: {0}\n    spec:\n      containers:\n",
                           n.name, n.replicas);
        out += container("        ", n.command, true) + volumes("      ");
    } else {
        d::comment(out, "", fmt::format("A replica spans {} nodes: the LeaderWorkerSet operator must be installed (leaderworkerset.x-k8s.io).", n.nodes));
        std::string line = "exec";
        for (auto const& w : n.command) line += " " + d::shell_word(w);
        line += fmt::format(" --nnodes {} --node-rank \"$LWS_WORKER_INDEX\"", n.nodes);
        line += engine == EngineKind::vllm ? " --master-addr \"$LWS_LEADER_ADDRESS\"" : " --dist-init-addr \"$LWS_LEADER_ADDRESS:20000\"";
        std::string const worker = engine == EngineKind::vllm ? line + " --headless" : line;
        out += fmt::format("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata:\n  name: {0}\nspec:\n  replicas: {1}\n  leaderWorkerTemplate:\n    size: {2}\n"
                           "    restartPolicy: RecreateGroupOnPodRestart\n    leaderTemplate:\n      metadata:\n        labels:\n          app: {0}\n      spec:\n        containers:\n",
                           n.name, n.replicas, n.nodes);
        out += container("          ", {"sh", "-c", line}, true) + volumes("        ");
        out += "    workerTemplate:\n      spec:\n        containers:\n" + container("          ", {"sh", "-c", worker}, false) + volumes("        ");
    }
    out += fmt::format("---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {0}\nspec:\n  selector:\n    app: {0}\n  ports:\n    - name: http\n      port: {1}\n      targetPort: http\n",
                       n.name, n.port);
    return out;
}

} // namespace servecap
