// Writing the tree: the config block of output files, help, and hints for misplaced words.
#include "arguments.hpp"

#include <sstream>

namespace onebasin {

std::string value_text(const Node& node) {
  if (node.kind == Kind::boolean) return node.flag() ? "true" : "false";
  if (node.kind == Kind::real) {
    std::ostringstream text;
    text << node.real();
    return text.str();
  }
  if (std::holds_alternative<long long>(node.value))
    return std::to_string(std::get<long long>(node.value));
  return node.text();
}

namespace {

std::string indent(int depth) { return std::string(2 * depth, ' '); }

void describe_children(const Node& node, int depth, std::vector<std::string>& lines);

void describe_group(const Node& group, int depth, std::vector<std::string>& lines) {
  lines.push_back(indent(depth) + group.name);
  describe_children(group, depth + 1, lines);
}

void describe_children(const Node& node, int depth, std::vector<std::string>& lines) {
  for (const Node& child : node.children) {
    if (child.kind == Kind::group) {
      describe_group(child, depth, lines);
      continue;
    }
    const bool is_default = child.value == child.preset;
    lines.push_back(indent(depth) + child.name + " = " + value_text(child)
                    + (is_default ? " (Default)" : ""));
    if (child.kind == Kind::choice && child.selected().kind == Kind::group)
      describe_group(child.selected(), depth + 1, lines);
  }
}

std::string placeholder(const Node& node) {
  switch (node.kind) {
    case Kind::integer:
    case Kind::wide:
      return "=<int>";
    case Kind::natural:
      return "=<unsigned int>";
    case Kind::real:
      return "=<double>";
    case Kind::boolean:
      return "=<boolean>";
    case Kind::text:
      return "=<string>";
    case Kind::choice:
      return "=<" + node.allowed + ">";
    default:
      return "";
  }
}

void usage_of(const Node& node, int depth, bool recursive, std::ostream& out) {
  out << indent(depth) << node.name << placeholder(node) << '\n';
  if (!node.about.empty()) out << indent(depth + 1) << node.about << '\n';
  if (node.is_value()) {
    if (!node.allowed.empty()) out << indent(depth + 1) << "Valid values: " << node.allowed << '\n';
    out << indent(depth + 1) << "Defaults to "
        << (value_text(node).empty() ? "\"\"" : value_text(node)) << '\n';
  } else if (node.kind == Kind::choice) {
    out << indent(depth + 1) << "Defaults to " << node.text() << '\n';
  }
  if (!recursive && depth > 0) return;
  for (const Node& child : node.children) usage_of(child, depth + 1, recursive, out);
}

void find_places(const Node& node, const std::string& path, const std::string& name,
                 std::vector<std::string>& found) {
  for (const Node& child : node.children) {
    if (child.name == name) found.push_back(path + child.name + placeholder(child));
    if (child.kind == Kind::choice) {
      for (const Node& option : child.children) {
        const std::string step = path + child.name + "=" + option.name;
        if (option.name == name) found.push_back(step);
        find_places(option, step + " ", name, found);
      }
    } else {
      find_places(child, path + child.name + " ", name, found);
    }
  }
}

}  // namespace

std::vector<std::string> describe(const Node& root) {
  std::vector<std::string> lines;
  describe_children(root, 0, lines);
  return lines;
}

std::string usage(const Node& node, bool recursive) {
  std::ostringstream out;
  if (node.name.empty()) {
    out << "Usage: <program> <argument> <subargument_1> ... <subargument_m>\n\n"
        << "Start with method=<one of " << node["method"].allowed << ">, or the bare name.\n"
        << "  info      what this program was built from\n"
        << "  help      this text, or that of the argument before it\n"
        << "  help-all  every argument\n\n";
    for (const Node& child : node.children) usage_of(child, 0, recursive, out);
  } else {
    usage_of(node, 0, recursive, out);
  }
  return out.str();
}

std::vector<std::string> places_of(const Node& root, const std::string& name) {
  std::vector<std::string> found;
  find_places(root, "", name, found);
  return found;
}

}  // namespace onebasin
