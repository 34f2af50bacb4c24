#include <servecap/memory/kv.hpp>

servecap::Bytes bytes_of_a_token(servecap::Model const& model) { return servecap::kv_bytes_per_token(model, {}); }
