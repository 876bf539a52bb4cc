// The settings of a run as a JSON file (`output save_cmdstan_config=1`).
#pragma once

#include "arguments.hpp"
#include "mathematics.hpp"

#include <stan/model/model_base.hpp>

namespace onebasin {

void write_config_file(const stan::model::model_base& model, const Node& arguments);

}  // namespace onebasin
