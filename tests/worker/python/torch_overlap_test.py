"""muster.torch.DistributedOptimizer(overlap=True), over a job in this process."""

import copy
import gc
import io
import unittest

import numpy
import torch
import torch.utils.checkpoint

import muster.torch
from tests.integration import harness
from tests.worker.python.fake_job import FakeJob

torch.set_num_threads(1)


def model_of_norm():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8),
                               torch.nn.Tanh(), torch.nn.Linear(8, 3))


def loss_of(model, step, dtype=torch.float32):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(6, 5, generator=generator).to(dtype)
    y = torch.randint(0, 3, (6,), generator=generator)
    return torch.nn.functional.cross_entropy(model(x).float(), y)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def distributed(model=None, job=None, overlap=True, make=sgd):
    model = model_of_norm() if model is None else model
    job = FakeJob() if job is None else job
    return muster.torch.DistributedOptimizer(
        make(model.parameters()), model, job, overlap=overlap), model, job


def train(model, optimizer, steps=1, dtype=torch.float32):
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, step, dtype)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class SameTest(unittest.TestCase):

    def check_same(self, make_model, dtype=torch.float32):
        """To the bit, with and without."""
        found = []
        for overlap in (False, True):
            optimizer, model, job = distributed(make_model(), None, overlap)
            found.append((train(model, optimizer, 9, dtype), job))
        (wanted, late), (losses, early) = found
        self.assertEqual(losses, wanted)
        for value, other in zip(early.values, late.values):
            numpy.testing.assert_array_equal(value, other)
        self.assertEqual(late.lefts[-1], [])
        return early

    def test_overlap_trains_the_same_to_the_bit(self):
        job = self.check_same(model_of_norm)
        self.assertEqual(len(job.lefts[-1]), 6)
        self.assertTrue(job.lefts[-1][0].startswith("3."))
        self.assertTrue(job.lefts[-1][-1].startswith("0."))

    def test_copied_tensors_leave_early_too(self):
        def strided():
            model = model_of_norm()
            model[0].weight.data = model[0].weight.data.t().contiguous().t()
            return model
        self.assertIn("0.weight", self.check_same(strided).lefts[-1])
        job = self.check_same(lambda: model_of_norm().bfloat16(),
                              torch.bfloat16)
        self.assertEqual(len(job.lefts[-1]), 6)

    def test_a_shared_parameter_leaves_once_with_all_its_uses(self):
        def tied():
            model = model_of_norm()
            model[0] = torch.nn.Linear(5, 5)
            model[1] = torch.nn.BatchNorm1d(5)
            model[2] = model[0]
            model[3] = torch.nn.Linear(5, 3)
            return model
        self.assertEqual(self.check_same(tied).lefts[-1].count("0.weight"), 1)

    def test_a_checkpointed_block_is_the_same(self):
        class Block(torch.nn.Linear):
            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(
                    super().forward, x, use_reentrant=False)

        def checkpointed():
            model = model_of_norm()
            model[3] = Block(8, 3)
            return model
        self.check_same(checkpointed)

    def test_what_has_no_hook_is_given_by_step(self):
        model = model_of_norm()
        model.unused = torch.nn.Parameter(torch.ones(2))
        model[0].bias.requires_grad_(False)
        optimizer, _, job = distributed(model)
        optimizer.start()
        loss_of(model[:4], 0).backward()
        model.unused.grad = torch.ones(2)
        optimizer.step()
        self.assertNotIn("unused", job.lefts[0])
        self.assertNotIn("0.bias", job.lefts[0])
        numpy.testing.assert_allclose(job.pushes[0][0]["unused"], [1.01] * 2)

    def test_gradients_that_are_kept_add_up_as_without(self):
        found = []
        for overlap in (False, True):
            optimizer, model, job = distributed(overlap=overlap)
            for step in range(3):
                loss_of(model, step).backward()
                optimizer.step()
            found.append(job.values)
        for value, other in zip(*found):
            numpy.testing.assert_array_equal(value, other)

    def test_a_closure_overlaps(self):
        optimizer, model, job = distributed()

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, 0)
            loss.backward()
            return loss
        for _ in range(2):
            optimizer.step(closure)
        self.assertEqual([len(left) for left in job.lefts], [6, 6])

    def test_a_schedulers_rate_is_that_of_all_gradients(self):
        found = []
        for overlap in (False, True):
            optimizer, model, job = distributed(overlap=overlap)
            scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
            for _ in range(3):
                train(model, optimizer)
                scheduler.step()
            self.assertEqual([push[2] for push in job.pushes], [1, 0.5, 0.25])
            found.append(job.values)
        for value, other in zip(*found):
            numpy.testing.assert_array_equal(value, other)


class RefusalTest(unittest.TestCase):

    def check_refused(self, words, between=lambda model: None,
                      optimizer=None, model=None, **settings):
        """In a step with `between` before step()."""
        if optimizer is None:
            optimizer, model, _ = distributed()
        train(model, optimizer)
        optimizer.zero_grad()
        with self.assertRaisesRegex(muster.torch.ConfigError, words):
            loss_of(model, 0).backward()
            between(model)
            optimizer.step(**settings)

    def test_clipping_is_refused_by_name(self):
        self.check_refused(
            "gradient of '3.bias' was changed.*overlap=False",
            lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(),
                                                         0.01))
        self.check_refused(
            "gradient of '0.weight' was changed",
            lambda model: model[0].weight.grad.mul_(2))

    def test_a_gradient_that_is_replaced_is_refused_by_name(self):
        def replace(model):
            model[0].weight.grad = model[0].weight.grad.clone()
        self.check_refused("gradient of '0.weight' was changed", replace)
        self.check_refused("was changed or set.*zero_grad",
                           lambda model: model.zero_grad())

    def test_a_second_backward_is_refused_by_name(self):
        self.check_refused(
            "second gradient of '3.bias' before step.*accumulate with "
            "overlap=False", lambda model: loss_of(model, 1).backward())

    def test_another_rate_is_refused(self):
        optimizer, model, _ = distributed()

        def schedule(_):
            optimizer.param_groups[0]["lr"] = 0.05
        self.check_refused("lr was changed since the backward pass", schedule,
                           optimizer, model)

    def test_examples_of_ones_own_are_refused(self):
        self.check_refused("examples=6.*job.shard", examples=6)

    def test_values_that_are_read_after_their_gradient_are_torchs_error(self):
        class Detached(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(5, 5)
                self.second = torch.nn.Linear(5, 3)

            def forward(self, x):
                # Wanted by first's gradient, when second's has left.
                return self.second(self.first(x) @ self.second.weight.detach()
                                   .t() @ torch.ones(3, 5)) + (
                                       self.second.weight.sum())
        optimizer, model, _ = distributed(Detached())
        optimizer.start()
        with self.assertRaisesRegex(RuntimeError, "inplace operation"):
            loss_of(model, 0).backward()

    def test_a_sparse_gradient_is_refused_by_name(self):
        model = torch.nn.Embedding(4, 2, sparse=True)
        optimizer, _, _ = distributed(model)
        optimizer.start()
        with self.assertRaisesRegex(muster.torch.ConfigError, "sparse"):
            model(torch.tensor([1])).sum().backward()

    def test_a_second_batch_is_refused_before_anything_leaves(self):
        optimizer, model, job = distributed()
        optimizer.start()
        job.batch_step = 7
        with self.assertRaisesRegex(muster.torch.ConfigError, "one batch"):
            loss_of(model, 0).backward()
        self.assertEqual(job.early, {})

    def test_a_rate_that_the_job_refuses_is_named(self):
        class Job(FakeJob):
            def push_tensor(self, *arguments):
                raise muster.torch.ConfigError("one rate for all")
        optimizer, model, _ = distributed(job=Job())
        optimizer.start()
        optimizer.param_groups[0]["lr"] = 0.05
        with self.assertRaisesRegex(
                muster.torch.ConfigError,
                "lr of the optimizer is 0.05 and was 0.1.*one rate for all"):
            loss_of(model, 0).backward()


class OutsideTest(unittest.TestCase):
    """Backward passes that are no step's."""

    def test_a_copy_of_the_model_has_no_hooks(self):
        optimizer, model, job = distributed()
        train(model, optimizer)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        for other in (copy.deepcopy(model),
                      torch.load(saved, weights_only=False)):
            for _ in range(2):
                loss_of(other, 0).backward()
        self.assertEqual(job.early, {})

    def test_gradients_after_the_end_or_before_the_start_go_nowhere(self):
        optimizer, model, job = distributed(job=FakeJob(steps=1))
        model.eval()
        loss_of(model, 0).backward()
        self.assertEqual(job.early, {})
        model.train()
        train(model, optimizer, 3)
        self.assertEqual(len(job.pushes), 1)

    def test_the_model_outlives_the_optimizer(self):
        optimizer, model, job = distributed()
        train(model, optimizer)
        job.starter = job.receiver = None
        del optimizer
        gc.collect()
        for _ in range(2):
            loss_of(model, 0).backward()
        self.assertEqual(job.early, {})


if __name__ == "__main__":
    harness.main()
