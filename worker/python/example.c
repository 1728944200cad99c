/* Fits y = 2 x + 1 on ps tasks:
 *   gcc example.c -I. libmuster.so -o example && ./example localhost:2222
 * More workers are "./example localhost:2222 any". */
#include <stdio.h>

#include "muster.h"

int main(int argc, char** argv) {
  char spec[512];
  float w[2] = {0, 0}, gradient[2], *values[] = {w};
  const float* gradients[] = {gradient};
  snprintf(spec, sizeof spec,
           "ps_hosts: '%s' worker_hosts: 'any' task_index: '%s' tensor { name: "
           "'w' shape: 2 } training { optimizer { name: 'sgd' attr { name: "
           "'learning_rate' f: 0.2 } } stop { steps: 200 } }",
           argc > 1 ? argv[1] : "localhost:2222", argc > 2 ? argv[2] : "0");
  int error;
  muster_job* job = muster_start(spec, values, &error);
  if (job == NULL) return fprintf(stderr, "%s\n", muster_error()), error;
  muster_step step;
  while (muster_await(job, 1000, &step) != MUSTER_OVER) {
    if (step.state == MUSTER_WAITING) continue;
    float x = (float)(step.step % 5) / 2 - 1,
          off = w[0] * x + w[1] - (2 * x + 1);
    gradient[0] = 2 * off * x, gradient[1] = 2 * off;
    muster_report report = {off * off, 1, -1, 1};
    muster_push(job, gradients, &report);
  }
  int exit_code = muster_close(job);
  printf("y = %.2f x + %.2f, %s\n", w[0], w[1],
         exit_code == 0 ? "done" : muster_error());
  return exit_code;
}
