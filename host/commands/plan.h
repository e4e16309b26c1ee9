// `blindfuse plan`: shows layouts to choose from, before there is any data.
#pragma once

namespace CLI {
class App;
}

namespace blindfuse {

void add_plan_command(CLI::App& program);

}  // namespace blindfuse
