// Faults that the stand-in for the CUDA runtime has when it is told to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blindfuse::fake_cuda {

// The fault of a kernel's launch.
enum class LaunchFault {
  kNone,
  kSpoil,     // leaves its last block out
  kFault,     // an illegal address: every later call of the runtime fails
  kHang,      // does not end, until other faults are set
  kSkip,      // computes nothing, and goes well
  kMiscount,  // computes all, and then one word or byte of it is another (emulator::miscount)
  kDie        // ends the process
};

// The fault of a copy.
enum class CopyFault { kNone, kAlter, kDrop };

// The faults from here on, "" for none, separated by commas. Counts calls and launches from 0
// again, and ends what hangs. Throws std::invalid_argument for what is not a list of
//
//   spoil=KERNEL, fault=KERNEL, hang=KERNEL, skip=KERNEL, miscount=KERNEL, die=KERNEL   a launch of
//                                 this kernel, as above
//   alter=COPY, drop=COPY         a copy brings a first byte that is not the one it was sent, or
//                                 nothing
//   fail=CALL:ERROR, lose=CALL:ERROR    a call returns this number; lose: and all that follow
//   stall=CALL                    once the device is lost, a call does not return
//   freeze=CALL                   a call does not return
//   print=CALL                    a call writes what is not asked for to standard output
//   devices=COUNT                 this many devices; 1 otherwise
//   only=DEVICE                   all of the above on this device alone; on all otherwise
//   memory=BYTES                  what each of them has; 4 GiB otherwise
//   capability=MAJOR              what they are; compute capability 9.0 otherwise
//   driver=VERSION                the driver's CUDA version, 12040 for 12.4, 0 for none; otherwise
//                                 that of the runtime
//
// KERNEL, COPY and CALL with "@N" mean the one that N others precede, with "@N+" that one and all
// later ones, and with neither every one. A KERNEL is what launch_kernel() gets as its name,
// "scan_wgmma<256>", or "scan_wgmma" for all tiles. A CALL is a function's name, or "any"; a COPY
// one that copies, or "copy" for all.
//
// At first they are those in the environment's BLINDFUSE_FAKE_CUDA_FAULTS; and, where the process
// is not a `blindfuse self-test`, instead those in BLINDFUSE_FAKE_CUDA_FAULTS_LATER if it is set. A
// worker of a self-test begins with the text in BLINDFUSE_FAKE_CUDA_GREETING on standard output.
//
// A device that this process has lost is there again.
void set_faults(std::string_view faults);

// The faults as long as it lives, and none after it.
class ScopedFaults {
 public:
  explicit ScopedFaults(std::string_view faults) { set_faults(faults); }
  ~ScopedFaults() { set_faults(""); }
  ScopedFaults(const ScopedFaults&) = delete;
  ScopedFaults& operator=(const ScopedFaults&) = delete;
};

// Calls of the runtime since the faults were set, launches among them.
uint64_t call_count();
// The latest of them that a fault happened to; "" for none.
std::string struck_call();
// Calls since the device was lost that give something back to it, or wait for it.
uint64_t late_give_back_count();

// For the runtime: each counts one, and says what it is to do.
LaunchFault next_launch(std::string_view kernel);
CopyFault next_copy(std::string_view call);
// The cudaError_t that a call returns without doing its work; 0 when it does it.
int next_call(std::string_view call);
int device_count();
uint64_t device_bytes();
int capability_major();
int driver_version();
// The device that is current for the calling thread.
extern thread_local int current_device;
// From now on every call returns this number, until other faults are set.
void lose(int error);
// The error that every call returns; 0 while the devices are not lost.
int lost();
// Returns when other faults are set.
void hang();

}  // namespace blindfuse::fake_cuda
