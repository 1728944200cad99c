#ifndef TESTS_PS_SERVER_HTTP_SMALL_LOOK_H_
#define TESTS_PS_SERVER_HTTP_SMALL_LOOK_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "ps_server/http/ps_look.h"

namespace muster {

// ps task 0 of two at 1700000000 s of the wall clock, which is 1000 s of the
// other one; it started 100 s before. Its shard has the nameless model and that
// of "we\"ird", with a table.
inline PsLook SmallShardLook() {
  PsLook look;
  look.num_ps = 2;
  look.version = "0.1.0";
  look.wall = absl::FromUnixSeconds(1700000000);
  look.now = absl::FromUnixSeconds(1000);
  look.started = absl::FromUnixSeconds(900);
  look.cpu_seconds = 1.5;
  look.resident_bytes = 4096;
  look.knows_jobs = true;
  look.shard.max_bytes = 1 << 20;
  look.shard.refused_for_memory = 2;

  ShardLook::Model model;
  model.state.set_phase(READY);
  model.state.set_tensors(1);
  model.state.set_bytes(400);
  model.state.set_slot_bytes(800);
  model.state.set_version(30);
  model.state.set_applied_parts(60);
  model.counters.applied_parts = 60;
  model.counters.duplicate_parts = 3;
  model.counters.fenced_parts = 4;
  model.counters.refused_parts = 5;
  model.counters.late_parts = 6;
  model.counters.steps = 31;
  model.counters.unfinished_steps = 1;
  look.shard.models.push_back(model);

  ShardLook::Model odd;
  odd.space = "we\"ird";
  TableState* const table = odd.state.add_tables();
  table->mutable_definition()->set_name("ta\\ble\n</script>");
  table->set_rows(7);
  table->set_bytes(700);
  table->set_created_rows(9);
  table->set_evicted_rows(2);
  look.shard.models.push_back(odd);
  return look;
}

// The same with the nameless job: worker 0 has trained and waits for worker 1,
// which has not come; worker 2 is lost.
inline PsLook SmallLook() {
  PsLook look = SmallShardLook();
  JobLook job;
  job.state.set_phase(RUNNING);
  job.state.set_model_epoch(2);
  job.state.set_global_step(25);
  job.state.set_examples(800);
  job.state.mutable_stop()->set_steps(100);
  job.state.set_stop_reason("failed: /secret/path of 10.0.0.1");
  job.state.set_save_error("/secret/path is full");
  job.state.set_saved_step(20);
  job.state.set_saved_s(2.5);
  for (const int64_t count : {4, 3, 0, 1}) {
    job.state.add_staleness_counts(count);
  }
  for (int32_t i = 0; i < 3; ++i) {
    Sender& sender = *job.state.add_workers()->mutable_sender();
    sender.mutable_task()->set_job("worker");
    sender.mutable_task()->set_index(i);
    if (i != 1) sender.set_incarnation(0x5ec4e7);
  }
  WorkerState& worker = *job.state.mutable_workers(0);
  worker.set_steps(25);
  worker.set_examples(800);
  worker.set_last_loss(0.25);
  worker.set_staleness_sum(6);
  worker.set_staleness_count(8);
  worker.set_dropped_steps(1);
  worker.set_waits_for(
      "/job:worker/task:1, /job:worker/task:2 to push its gradient of step 26");
  job.state.mutable_workers(2)->set_lost(true);
  job.totals.resize(3);
  job.totals[0] = {35, 1120, 1, absl::FromUnixSeconds(990)};
  look.jobs.push_back(std::move(job));
  return look;
}

}  // namespace muster

#endif  // TESTS_PS_SERVER_HTTP_SMALL_LOOK_H_
