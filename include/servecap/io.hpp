// servecap: every reader and writer of files
// SPDX-License-Identifier: Apache-2.0
//
// Made by tests/checks/umbrella.cmake; refresh with
//   cmake -D SOURCE=. -D UPDATE=1 -P tests/checks/umbrella.cmake

#pragma once

// IWYU pragma: begin_exports
#include <servecap/io/checkpoint.hpp>
#include <servecap/io/csv.hpp>
#include <servecap/io/embedded.hpp>
#include <servecap/io/gpu_store.hpp>
#include <servecap/io/hf_config.hpp>
#include <servecap/io/hf_families.hpp>
#include <servecap/io/hf_quant.hpp>
#include <servecap/io/hf_vision.hpp>
#include <servecap/io/import_bench.hpp>
#include <servecap/io/import_finding.hpp>
#include <servecap/io/import_run.hpp>
#include <servecap/io/json.hpp>
#include <servecap/io/line_matcher.hpp>
#include <servecap/io/model_store.hpp>
#include <servecap/io/plan_json.hpp>
#include <servecap/io/price_import.hpp>
#include <servecap/io/rows.hpp>
#include <servecap/io/startup_csv.hpp>
#include <servecap/io/startup_log.hpp>
// IWYU pragma: end_exports
