/* A worker of a Muster job whose model is a program's own: the program
 * computes gradients, however it likes; ps tasks hold the parameters and apply
 * the update rule. Plain C; libmuster.so.
 *
 *   muster_job* job = muster_start(spec, values);       // values: one a tensor
 *   muster_step step;
 *   while (muster_await(job, 1000, &step) != MUSTER_OVER) {
 *     if (step.state == MUSTER_WAITING) continue;       // look for Ctrl-C
 *     compute(values, gradients, &report.loss);
 *     muster_push(job, gradients, &report);
 *   }
 *   int exit_code = muster_close(job);
 *
 * `spec` is the text of a ProgramSpec (proto/program.proto). The job's threads
 * are its own; calls for one job come from one thread, but muster_stop and
 * muster_log from any. After a fork calls in the child fail with
 * MUSTER_ERROR_FORKED; a child without calls is harmless.
 */
#ifndef WORKER_PYTHON_MUSTER_H_
#define WORKER_PYTHON_MUSTER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_job muster_job;

/* The kinds of an error; muster_error() has the words. */
enum {
  MUSTER_OK = 0,
  /* A spec, shape, name or call that cannot be: exit code 2. */
  MUSTER_ERROR_CONFIG = 1,
  /* The train_dir or a checkpoint in it is of no use: exit code 3. */
  MUSTER_ERROR_CHECKPOINT = 2,
  /* Keys or an address that is not allowed: exit code 4. */
  MUSTER_ERROR_SECURITY = 3,
  /* A peer that did not come, or a full disk; another try may help: 138. */
  MUSTER_ERROR_UNAVAILABLE = 4,
  /* All else: exit code 1. */
  MUSTER_ERROR_FAILED = 5,
  /* A call in the child of a fork. Its muster_await says MUSTER_OVER, its
   * muster_close frees nothing and returns 1. */
  MUSTER_ERROR_FORKED = 6,
  /* No error: the call has come to its timeout; make it again. */
  MUSTER_NOT_YET = 7,
  /* No error: the job is over for this worker, and no rows can be read. */
  MUSTER_JOB_OVER = 8,
};

/* The state of a job as muster_await finds it. */
enum {
  /* Nothing to compute yet: for a ps task, the chief, other workers. */
  MUSTER_WAITING = 0,
  /* `values` are those of the step; gradients are wanted. */
  MUSTER_STEP = 1,
  /* The job is over for this worker; muster_close says how. If it is done (exit
   * code 0), the chief's `values` are those of the last checkpoint; another
   * worker's, too, unless it was done before the job (then those of when it
   * left) or lost a ps at the very end (it has said so). Else they are those of
   * the last step. */
  MUSTER_OVER = 2,
};

/* The step that is wanted, and what became of the one before. */
typedef struct muster_step {
  int32_t state;
  /* Steps that this process has begun; the first is 1. */
  int64_t step;
  /* Updates of all workers, when this step was granted. */
  int64_t global_step;
  /* Counts initializations and restores: `values` of another one are no
   * successors of those before. */
  int64_t model_epoch;
  /* Steps whose rows are leased: this one and those after it. */
  int32_t leases;
  /* Of the step before: updates between its pull and its own; what was pushed
   * is in no update (late or refused). */
  double staleness;
  int32_t dropped;
  /* With MUSTER_OVER: `values` are of this job's model; see MUSTER_OVER. 0:
   * they are not, since this worker came when there was nothing left to do, or
   * since the chief could not read the last ones (it has said why). */
  int32_t has_values;
} muster_step;

typedef struct muster_report {
  /* The mean over the step's rows; NaN if the program has none. */
  double loss;
  /* Rows, and right answers among them; -1: not known. */
  int64_t examples;
  int64_t correct;
  /* The factor of the update rule's learning rate, more than 0; 1 without a
   * schedule of the program's. */
  double learning_rate_factor;
} muster_report;

/* A process's place in its cluster. */
typedef struct muster_task {
  /* "worker" or "chief". */
  char job[16];
  /* -1: it is numbered when it starts. */
  int32_t index;
  int32_t is_chief;
  int32_t num_ps;
  /* 0: whoever comes. */
  int32_t num_workers;
} muster_task;

/* "0.1.0", and the version of this interface, which a caller compares with the
 * one that it was written for. */
const char* muster_version(void);
#define MUSTER_ABI 4
int muster_abi(void);

/* The words of this thread's last error; "" if there was none. Valid until its
 * next call. */
const char* muster_error(void);

/* Finds cluster and task of a spec, without a connection. Returns a kind of
 * error. */
int muster_resolve(const char* spec, muster_task* task);

/* Begins to take part. `values`: float32, row-major, one a tensor of the spec,
 * the initial ones; they are read, and written, until muster_close, but not
 * between a muster_await that has said MUSTER_STEP and muster_push, or
 * muster_stop. NULL: an error, whose kind is *error. */
muster_job* muster_start(const char* spec, float* const* values, int* error);

/* Waits for the next step for at most so long; returns step->state. The same
 * step again until it is pushed. */
int muster_await(muster_job* job, int timeout_ms, muster_step* step);

/* Rows of the data set, in the order of the job's permutation, that step
 * number `ahead` from now (0: this one) is of, at most `size` of them; returns
 * how many the step has, -1 if it is not leased. *epoch: of the first, from 0
 * on. */
int64_t muster_rows(muster_job* job, int ahead, int64_t* rows, int64_t size,
                    int64_t* epoch);

/* Gives the step's gradients, one a tensor (of a state tensor the difference
 * that is added to it; NULL for zeros) and returns at once; their memory is
 * read until muster_await says MUSTER_STEP or MUSTER_OVER. Returns a kind of
 * error. REQUIRES: MUSTER_STEP. */
int muster_push(muster_job* job, const float* const* gradients,
                const muster_report* report);

/* Gives one gradient of the step before the others, as soon as it is final: it
 * leaves while those are computed. Its memory is read, and that of the tensor's
 * value may be written, from now on; muster_push, which gives the rest, does
 * not look at gradients[tensor]. Of the report `examples` and
 * `learning_rate_factor` are read, and muster_push must say the same. From any
 * thread, if muster_push comes after its return. REQUIRES: MUSTER_STEP. */
int muster_push_tensor(muster_job* job, int tensor, const float* gradient,
                       const muster_report* report);

/* Sparse tables: rows of float32 by 64-bit ids, made as they are first pushed
 * to. Tables are numbered as ProgramSpec.table has them.
 *
 * Reads the rows of `ids`, which may repeat, into values [count, dim]; one that
 * is not there has its first values, and is not made. Waits for about so long
 * at most. Returns a kind of error, MUSTER_NOT_YET and MUSTER_JOB_OVER among
 * them; after the former the next call has the same arguments. REQUIRES:
 * MUSTER_STEP. */
int muster_pull_rows(muster_job* job, int table, const int64_t* ids,
                     int64_t count, float* values, int timeout_ms);

/* Gives gradients [count, dim] of the rows of `ids`, each once, which are of
 * the step that the next muster_push gives; one call a table and step. What no
 * step pushes stays as it is. Both are read as long as muster_push's memory.
 * Returns a kind of error. REQUIRES: MUSTER_STEP. */
int muster_push_rows(muster_job* job, int table, const int64_t* ids,
                     int64_t count, const float* gradients);

/* Writes the first values of rows, [count, dim], of a table that the text of a
 * TableDef (proto/table.proto) defines. Starts nothing. Returns a kind of
 * error. */
int muster_first_rows(const char* table_def, const int64_t* ids, int64_t count,
                      float* values);

/* Takes no more steps: with signal 0 this worker is done, and the chief ends
 * the job when all are; else as the signal of a worker (drain; the chief saves
 * and ends the job). muster_await comes to MUSTER_OVER. */
int muster_stop(muster_job* job, int signal);

/* The chief saves as soon as it can; without effect elsewhere. */
int muster_save(muster_job* job);

/* A figure of the current step, for the chief's TensorBoard log. */
int muster_log(muster_job* job, const char* name, double value);

/* Ends: returns the exit code of a worker with this outcome (0: done). Stops
 * first if need be. */
int muster_close(muster_job* job);

/* Reads the parameters of a job in training from its ps tasks. The reader takes
 * no part in the job: nothing of it waits, and no worker is displaced. Each
 * block of a tensor is of some instant; all are of one initialization or
 * restore. With certs_dir it proves to be a worker, by the one certificate of
 * job worker in that folder.
 *
 * Calls for one reader come from one thread. */
typedef struct muster_reader muster_reader;

typedef struct muster_tensor {
  /* Valid until muster_read_close. */
  const char* name;
  const int64_t* shape;
  int32_t rank;
} muster_tensor;

/* Of `spec`, the text of a ProgramSpec, a reader wants ps_hosts or cluster;
 * namespace, certs_dir, allow_insecure_network and max_wait_seconds may be
 * there. Connects to nobody yet. NULL: an error, whose kind is *error. */
muster_reader* muster_read_open(const char* spec, int* error);

/* Waits for about so long at most for ps tasks and an initialized model, and
 * gives its tensors. Returns a kind of error, MUSTER_NOT_YET among them;
 * MUSTER_ERROR_UNAVAILABLE after max_wait_seconds. */
int muster_read_tensors(muster_reader* reader, int timeout_ms,
                        const muster_tensor** tensors, int* count);

/* Reads all values, float32, row-major, each tensor's into its place; after
 * MUSTER_NOT_YET the next call goes on with the same places. Returns as
 * muster_read_tensors. REQUIRES: muster_read_tensors has returned MUSTER_OK. */
int muster_read_values(muster_reader* reader, int timeout_ms,
                       float* const* values);

/* The tables of the job, whose rows a reader does not read; valid until the
 * next call. REQUIRES: muster_read_tensors has returned MUSTER_OK. */
int muster_read_tables(muster_reader* reader, const char* const** names,
                       int* count);

int muster_read_close(muster_reader* reader);

#ifdef __cplusplus
}
#endif

#endif /* WORKER_PYTHON_MUSTER_H_ */
