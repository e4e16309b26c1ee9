#include "cuda/device/device_loss.h"

#include <atomic>

namespace blindfuse {
namespace {

std::atomic<bool> is_lost = false;

}  // namespace

bool is_device_lost() { return is_lost; }
void note_device_lost() { is_lost = true; }
void forget_lost_device() { is_lost = false; }

}  // namespace blindfuse
