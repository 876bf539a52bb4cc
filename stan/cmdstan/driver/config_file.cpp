#include "config_file.hpp"

#include "output_files.hpp"
#include "run.hpp"

#include <stan/version.hpp>

namespace onebasin {
namespace {

void write_children(const Node& node, JsonWriter& json);

void write_group(const Node& group, JsonWriter& json) {
  json.begin_record(group.name);
  write_children(group, json);
  json.end_record();
}

void write_node(const Node& node, JsonWriter& json) {
  switch (node.kind) {
    case Kind::group:
      return write_group(node, json);
    case Kind::choice:
      json.begin_record(node.name);
      json.write("value", node.text());
      if (node.selected().kind == Kind::group) write_group(node.selected(), json);
      return json.end_record();
    case Kind::boolean:
      return json.write(node.name, node.flag());
    case Kind::real:
      return json.write(node.name, node.real());
    case Kind::text:
      return json.write(node.name, node.text());
    default:
      return json.write(node.name, std::get<long long>(node.value));
  }
}

void write_children(const Node& node, JsonWriter& json) {
  for (const Node& child : node.children) write_node(child, json);
}

// `stanc_version = stanc3 v2.39.0` becomes a key and its text.
void write_assignment(const std::string& line, JsonWriter& json) {
  const std::size_t sign = line.find(" =");
  if (sign == std::string::npos) return;
  const std::size_t start = line.find_first_not_of(" =", sign);
  json.write(line.substr(0, sign), start == std::string::npos ? "" : line.substr(start));
}

// The settings have one file for all chains; where their names are spelled out, beside the first.
std::string first_name(const Node& arguments) {
  const std::string& path = arguments["output"]["file"].text();
  const Node* chains = arguments["method"].selected().find("num_chains");
  return chains && chains->integer() > 1 ? spelled_out(path, chains->integer()).front() : path;
}

}  // namespace

void write_config_file(const stan::model::model_base& model, const Node& arguments) {
  const Node& output = arguments["output"];
  const std::string path = split_name(first_name(arguments)).base + "_config.json";
  JsonWriter json(open_output(path, output["sig_figs"].integer(), Flushing::always));
  json.begin_record();
  json.write("stan_major_version", stan::MAJOR_VERSION);
  json.write("stan_minor_version", stan::MINOR_VERSION);
  json.write("stan_patch_version", stan::PATCH_VERSION);
  json.write("model_name", model.model_name());
  json.write("start_datetime", utc_now());
  write_children(arguments, json);
  json.write("mpi_enabled", false);
  for (const std::string& line : model.model_compile_info()) write_assignment(line, json);
  json.end_record();
}

}  // namespace onebasin
