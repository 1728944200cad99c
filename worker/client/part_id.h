#ifndef WORKER_CLIENT_PART_ID_H_
#define WORKER_CLIENT_PART_ID_H_

namespace muster {

// One part of a transfer: the part'th of those that go to or come from a shard.
struct PartId {
  int shard = 0;
  int part = 0;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PART_ID_H_
