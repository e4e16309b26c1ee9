// The handful of layouts between which an operator may want to choose.
#pragma once

#include <string>
#include <vector>

#include "host/publish/plan_chooser.h"
#include "host/publish/planner.h"

namespace blindfuse {

// Copies of the chosen plan, first, and of the best plan of each other kind that the request's mode
// and set leave open: the hint mode, and the packed mode with one level and, if with_two_levels,
// with two, without and with a short key. Of a packed kind these are the best of those whose
// packing tables take at most as many bytes as the matrix, and at most twice as many; up to
// kPackingBytesUnasked they never count as too many. No layout is there twice.
//
// request: one for plan_kinds(). Its levels count if with_two_levels is false, and its short_key,
// if it is set, leaves out the kind without one.
std::vector<Plan> plans_worth_comparing(const PlanRequest& request, bool with_two_levels,
                                        const PlanChooser& chooser, const Plan& chosen);

}  // namespace blindfuse
