"""muster.torch.DistributedOptimizer, over a job in this process."""

import contextlib
import copy
import io
import pickle
import unittest
import warnings

import numpy
import torch

import muster.torch
from tests.integration import harness
from tests.worker.python.fake_job import FakeJob

torch.set_num_threads(1)
STEPS = 50
# Float32 beside float64, over STEPS.
RELATIVE = 1e-5


def dense_model(seed=0, hidden=8):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, hidden), torch.nn.Tanh(),
                               torch.nn.Linear(hidden, 3))


def batch(step, rows=6):
    generator = torch.Generator().manual_seed(step)
    return (torch.randn(rows, 5, generator=generator),
            torch.randint(0, 3, (rows,), generator=generator))


def loss_of(model, step):
    x, y = batch(step)
    return torch.nn.functional.cross_entropy(model(x), y)


def train(model, optimizer, steps=STEPS, scheduler=None):
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return losses


def distributed(make, model=None, job=None):
    model = dense_model() if model is None else model
    job = FakeJob() if job is None else job
    return (muster.torch.DistributedOptimizer(make(model.parameters()), model,
                                              job), model, job)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


class RulesTest(unittest.TestCase):

    def check_like_torch(self, make):
        model = dense_model()
        wanted = train(model, make(model.parameters()))
        optimizer, own, _ = distributed(make)
        found = train(own, optimizer)
        numpy.testing.assert_allclose(found, wanted, rtol=RELATIVE)
        for parameter, other in zip(model.parameters(), own.parameters()):
            numpy.testing.assert_allclose(
                other.detach(), parameter.detach(), rtol=1e-3, atol=1e-5)

    def test_sgd(self):
        self.check_like_torch(sgd)

    def test_sgd_weight_decay_adds_to_the_gradient(self):
        self.check_like_torch(
            lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1))

    def test_sgd_momentum(self):
        self.check_like_torch(lambda p: torch.optim.SGD(
            p, lr=0.1, momentum=0.8, weight_decay=0.01, foreach=True))

    def test_sgd_nesterov(self):
        self.check_like_torch(
            lambda p: torch.optim.SGD(p, 0.1, momentum=0.7, nesterov=True))

    def test_adam(self):
        self.check_like_torch(lambda p: torch.optim.Adam(
            p, lr=1e-2, betas=(0.8, 0.95), eps=1e-4))

    def test_adam_weight_decay_adds_to_the_gradient(self):
        self.check_like_torch(
            lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=0.1))

    def test_adamw(self):
        self.check_like_torch(
            lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.2))

    def test_adam_with_decoupled_weight_decay_is_adamw(self):
        self.check_like_torch(lambda p: torch.optim.Adam(
            p, lr=1e-2, weight_decay=0.2, decoupled_weight_decay=True))

    def test_adagrad(self):
        self.check_like_torch(lambda p: torch.optim.Adagrad(
            p, lr=0.1, initial_accumulator_value=0.3, eps=1e-3,
            weight_decay=0.01))

    def test_rmsprop(self):
        self.check_like_torch(lambda p: torch.optim.RMSprop(
            p, lr=1e-2, alpha=0.9, eps=1e-3, weight_decay=0.01))

    def test_rmsprop_momentum(self):
        self.check_like_torch(lambda p: torch.optim.RMSprop(
            p, lr=1e-2, momentum=0.5))


class RefusalTest(unittest.TestCase):

    def check_refused(self, words, make, model=None):
        with self.assertRaises(muster.torch.ConfigError) as raised:
            distributed(make, model)
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_each_setting_that_no_rule_has_is_named(self):
        optim = torch.optim
        for name, make in [
                ("dampening", lambda p: optim.SGD(p, 0.1, 0.9, dampening=0.1)),
                ("centered", lambda p: optim.RMSprop(p, centered=True)),
                ("lr_decay", lambda p: optim.Adagrad(p, lr_decay=0.1)),
                ("maximize", lambda p: optim.SGD(p, 0.1, maximize=True)),
                ("amsgrad", lambda p: optim.Adam(p, amsgrad=True)),
                ("differentiable",
                 lambda p: optim.Adam(p, differentiable=True)),
                ("lr=0", lambda p: optim.SGD(p, lr=0.0))]:
            with self.subTest(name):
                self.check_refused([name], make)

    def test_another_class_is_named_with_those_that_can_be(self):
        self.check_refused(["Adadelta", "AdamW"], torch.optim.Adadelta)

    def test_a_class_of_the_users_own_is_refused(self):
        class Own(torch.optim.SGD):
            pass
        self.check_refused(["Own"], lambda p: Own(p, lr=0.1))

    def test_groups_that_differ_are_refused_by_the_setting(self):
        def two(**settings):
            def make(parameters):
                first, *rest = parameters
                return torch.optim.SGD(
                    [{"params": [first]}, dict(settings, params=rest)], lr=0.1)
            return make
        self.check_refused(["lr", "0.2"], two(lr=0.2))
        self.check_refused(["weight_decay"], two(weight_decay=0.5))
        distributed(two(lr=0.1))

    def test_a_parameter_that_is_not_in_the_optimizer_is_named(self):
        model = dense_model()
        self.check_refused(["0.weight"],
                           lambda _: sgd(model[2].parameters()), model)

    def test_parameters_of_another_model_are_refused(self):
        model = dense_model()
        self.check_refused(["[5, 5]"], lambda p: sgd(
            list(p) + [torch.nn.Parameter(torch.zeros(5, 5))]), model)

    def test_another_dtype_is_named_with_the_way_out(self):
        self.check_refused(["0.weight", "float64", "model.float()"], sgd,
                           dense_model().double())

    def test_another_device_is_named_with_the_way_out(self):
        self.check_refused(["'meta'", "model.cpu()"], sgd,
                           torch.nn.Linear(2, 2, device="meta"))

    def test_a_lazy_layer_is_named(self):
        self.check_refused(["weight", "batch first"], sgd,
                           torch.nn.LazyLinear(2))

    def test_batch_norm_without_momentum_is_named(self):
        model = dense_model()
        model.norm = torch.nn.BatchNorm1d(3, momentum=None)
        self.check_refused(["'norm'", "momentum=None"], sgd, model)
        model.norm = torch.nn.BatchNorm1d(3, momentum=None,
                                          track_running_stats=False)
        distributed(sgd, model)

    def test_parameters_that_have_memory_in_common_are_named(self):
        memory = torch.zeros(4, 4)

        def model_of(*parts):
            model = torch.nn.Module()
            for index, part in enumerate(parts):
                model.register_parameter("p%d" % index,
                                         torch.nn.Parameter(part))
            return model
        for parts in ([memory[:3], memory[2:]], [memory, memory[2]],
                      [memory, memory.t()],
                      [memory[:, :3], memory[:, 2:]],
                      [memory, torch.zeros(1), memory[0, :1]]):
            self.check_refused(["'p0'", "in common"], sgd, model_of(*parts))
        distributed(sgd, model_of(memory[:2], memory[2:], torch.zeros(0),
                                  torch.tensor(1.0)))
        distributed(sgd, model_of(memory[:, :2], memory[:, 2:]))

    def test_elements_that_have_memory_in_common_are_named(self):
        model = torch.nn.Module()
        model.a = torch.nn.Parameter(torch.zeros(1).expand(4))
        self.check_refused(["'a'", "share memory"], sgd, model)

    def test_a_negative_rate_is_named(self):
        def make(parameters):
            optimizer = sgd(parameters)
            optimizer.param_groups[0]["lr"] = -1.0
            return optimizer
        self.check_refused(["lr is -1"], make)

    def test_no_job_is_told(self):
        model = dense_model()
        with self.assertRaisesRegex(muster.torch.ConfigError, "init"):
            muster.torch.DistributedOptimizer(sgd(model.parameters()), model)


class TensorsTest(unittest.TestCase):

    def test_a_frozen_parameter_is_state_and_stays(self):
        model = dense_model()
        model[0].weight.requires_grad_(False)
        kept = model[0].weight.clone()
        optimizer, _, job = distributed(sgd, model)
        train(model, optimizer, 3)
        self.assertEqual(job.states, ["0.weight"])
        self.assertIsNone(job.pushes[0][0]["0.weight"])
        self.assertTrue(torch.equal(model[0].weight, kept))

    def test_values_of_the_ps_are_the_models_from_the_first_forward_on(self):
        job = FakeJob(restored={"0.bias": numpy.full(8, 7)})
        optimizer, model, _ = distributed(sgd, job=job)
        seen = []
        model[0].register_forward_hook(
            lambda *_: seen.append(model[0].bias[0].item()))
        self.assertFalse(job.is_started)
        train(model, optimizer, 1)
        self.assertEqual(seen, [7.0])
        self.assertEqual(len(job.pushes), 1)

    def test_an_evaluation_before_does_not_start_the_job(self):
        _, model, job = distributed(sgd)
        with torch.no_grad():
            model(batch(0)[0])
        model.eval()
        model(batch(0)[0])
        self.assertFalse(job.is_started)

    def test_a_shared_parameter_is_one(self):
        model = dense_model(hidden=5)
        model.add_module("again", model[0])
        model.tied = model[0].weight
        optimizer, _, job = distributed(sgd, model)
        optimizer.start()
        self.assertEqual(job.names, ["tied", "0.bias", "2.weight", "2.bias"])

    def test_a_parameter_without_gradient_is_pushed_as_zeros(self):
        model = dense_model()
        model.unused = torch.nn.Parameter(torch.ones(2))
        optimizer, _, job = distributed(sgd, model)
        optimizer.start()
        loss_of(model[:3], 0).backward()
        optimizer.step()
        self.assertIsNone(job.pushes[0][0]["unused"])
        self.assertTrue(torch.equal(model.unused, torch.ones(2)))

    def test_batch_norms_averages_are_state_and_its_count_is_not(self):
        def make():
            torch.manual_seed(1)
            return torch.nn.Sequential(torch.nn.Linear(5, 4),
                                       torch.nn.BatchNorm1d(4))
        model, alone = make(), make()
        job = FakeJob(restored={"1.running_mean": alone[1].running_mean + 3})
        alone[1].running_mean += 3
        optimizer, _, _ = distributed(sgd, model, job)
        optimizer.start()
        self.assertEqual(model[1].running_mean[0], 3)
        found = train(model, optimizer, 9)
        numpy.testing.assert_allclose(
            found, train(alone, sgd(alone.parameters()), 9), rtol=RELATIVE)
        self.assertEqual(job.states, ["1.running_mean", "1.running_var"])
        for name in job.states:
            numpy.testing.assert_allclose(
                job.values[job.names.index(name)], alone.get_buffer(name),
                rtol=RELATIVE)

    def test_what_has_come_at_the_end_is_the_models(self):
        model = torch.nn.BatchNorm1d(5)
        optimizer, _, job = distributed(sgd, model)
        optimizer.start()
        for value in job.values:
            value[...] = 7
        job.bring_values()
        job.receiver()
        for name in job.names:
            self.assertEqual(model.state_dict()[name].tolist(), [7] * 5)

    def test_a_buffer_that_is_another_tensor_in_each_pass_is_state(self):
        class Average(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(5))
                self.register_buffer("table", torch.ones(5))

            def forward(self, x):
                self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
                return x * self.table
        model = torch.nn.Sequential(Average(), *dense_model())
        optimizer, _, job = distributed(sgd, model)
        train(model, optimizer, 1)
        mean = 0.5 * batch(0)[0].mean(0)
        numpy.testing.assert_allclose(job.values[job.names.index("0.mean")],
                                      mean, rtol=RELATIVE)
        numpy.testing.assert_allclose(model[0].mean, mean, rtol=RELATIVE)
        self.assertEqual(job.pushes[0][0]["0.table"].tolist(), [0] * 5)

    def test_a_buffer_of_infinities_stays(self):
        model = dense_model()
        model.register_buffer("mask", torch.tensor([0, -torch.inf]))
        optimizer, _, job = distributed(sgd, model)
        train(model, optimizer, 1)
        self.assertEqual(job.pushes[0][0]["mask"].tolist(), [0, 0])
        self.assertEqual(model.mask.tolist(), [0, -torch.inf])

    def test_half_precision_is_float32_on_the_ps(self):
        for dtype in (torch.bfloat16, torch.float16):
            model, alone = dense_model().to(dtype), dense_model().to(dtype)
            optimizer, _, job = distributed(
                lambda p: torch.optim.SGD(p, lr=1e-4, weight_decay=0.5), model)
            with contextlib.redirect_stderr(io.StringIO()) as said:
                optimizer.start()
            self.assertEqual(
                said.getvalue(), "muster: copied in each step, as not "
                "contiguous float32 on the CPU: 0.weight, 0.bias, 2.weight, "
                "2.bias\n")
            first = torch.from_numpy(job.values[0]).clone()
            for step in range(3):
                for one in (model, alone):
                    one.zero_grad()
                    x, y = batch(step)
                    torch.nn.functional.cross_entropy(
                        one(x.to(dtype)).float(), y).backward()
                gradient = model[0].weight.grad.float()
                wanted = gradient + 0.5 * torch.from_numpy(job.values[0])
                optimizer.step()
                numpy.testing.assert_array_equal(
                    job.pushes[step][0]["0.weight"], wanted)
            # Less than half precision has of it is not lost.
            self.assertFalse(torch.equal(torch.from_numpy(job.values[0]),
                                         first))
            self.assertTrue(torch.equal(
                model[0].weight, torch.from_numpy(job.values[0]).to(dtype)))

    def test_a_buffer_in_half_precision_is_pushed_from_what_the_model_got(self):
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(5, affine=False),
                                    *dense_model())
        model[0].half()
        got = torch.full((5,), 0.1)
        optimizer, _, job = distributed(
            sgd, model, FakeJob(restored={"0.running_mean": got}))
        optimizer.start()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        with torch.no_grad():
            model[0].running_mean[0] = 3
        optimizer.step()
        pushed = job.pushes[0][0]["0.running_mean"]
        self.assertEqual(pushed.tolist(),
                         [3 - got.half().float()[0].item()] + [0] * 4)
        self.assertEqual(model[0].running_mean[0], 3)

    @unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
    def test_a_model_on_a_gpu_trains_as_one_on_the_cpu(self):
        for overlap in (False, True):
            for dtype in (torch.float32, torch.bfloat16):
                model = dense_model()
                model.insert(1, torch.nn.BatchNorm1d(8))
                alone = copy.deepcopy(model).to("cuda", dtype)
                model.to("cuda", dtype)
                job = FakeJob()
                optimizer = muster.torch.DistributedOptimizer(
                    sgd(model.parameters()), model, job, overlap=overlap)
                own = sgd(alone.parameters())
                for step in range(5):
                    x, y = (part.cuda() for part in batch(step))
                    losses = []
                    for one, stepper in ((model, optimizer), (alone, own)):
                        stepper.zero_grad()
                        loss = torch.nn.functional.cross_entropy(
                            one(x.to(dtype)).float(), y)
                        loss.backward()
                        stepper.step()
                        losses.append(loss.item())
                    numpy.testing.assert_allclose(
                        *losses, rtol=1e-4 if dtype is torch.float32 else 0.1)
                self.assertTrue(model[0].weight.is_cuda)

    def test_a_buffer_that_is_not_saved_stays_here(self):
        model = dense_model()
        model.register_buffer("scratch", torch.zeros(3), persistent=False)
        model.register_buffer("table", torch.zeros(3))
        model[0].register_buffer("again", model.table)
        optimizer, _, job = distributed(sgd, model)
        optimizer.start()
        self.assertEqual(job.states, ["table"])

    def test_a_parameter_that_is_not_contiguous_is_copied_both_ways(self):
        model, alone = dense_model(), dense_model()
        model[0].weight.data = model[0].weight.data.t().contiguous().t()
        self.assertFalse(model[0].weight.is_contiguous())
        optimizer, _, _ = distributed(sgd, model)
        numpy.testing.assert_allclose(
            train(model, optimizer, 9),
            train(alone, sgd(alone.parameters()), 9), rtol=RELATIVE)

    def test_a_gradient_that_is_not_contiguous_is_pushed_in_order(self):
        optimizer, model, job = distributed(sgd)
        optimizer.start()
        wanted = torch.arange(40.0).reshape(5, 8).t()
        model[0].weight.grad = wanted
        optimizer.step()
        numpy.testing.assert_array_equal(job.pushes[0][0]["0.weight"], wanted)

    def check_step_refused(self, change, words, model=None):
        """The step after `change` of the model, and a first step."""
        optimizer, model, _ = distributed(sgd, model)
        train(model, optimizer, 1)
        change(model)
        with self.assertRaisesRegex(muster.torch.ConfigError, words):
            train(model, optimizer, 1)

    def test_a_parameter_that_is_frozen_later_is_refused_by_name(self):
        self.check_step_refused(
            lambda model: model[2].bias.requires_grad_(False),
            "requires_grad of '2.bias' is False")

    def test_a_parameter_that_is_unfrozen_later_is_refused_by_name(self):
        model = dense_model()
        model[0].bias.requires_grad_(False)
        self.check_step_refused(
            lambda model: model[0].bias.requires_grad_(True),
            "requires_grad of '0.bias' is True", model)

    def test_a_gradient_of_a_frozen_parameter_is_refused_by_name(self):
        model = dense_model()
        model[0].bias.requires_grad_(False)

        def thaw(model):
            model[0].bias.requires_grad_(True)
            loss_of(model, 0).backward()
            model[0].bias.requires_grad_(False)
        optimizer, _, _ = distributed(sgd, model)
        thaw(model)
        with self.assertRaisesRegex(muster.torch.ConfigError,
                                    "'0.bias' is frozen"):
            optimizer.step()

    def test_values_that_are_written_later_are_refused_by_name(self):
        def clip(model):
            with torch.no_grad():
                model[2].weight.clamp_(-0.01, 0.01)
        self.check_step_refused(clip, "'2.weight' was written to.*clipping")
        self.check_step_refused(
            lambda model: model.load_state_dict(dense_model(1).state_dict()),
            "'0.weight' was written to.*before the first step")
        self.check_step_refused(
            lambda model: torch.optim.Adam(model.parameters()).step(),
            "'0.weight' was written to")

    def test_parameters_that_are_replaced_later_are_refused_by_name(self):
        self.check_step_refused(
            lambda model: model.load_state_dict(dense_model(1).state_dict(),
                                                assign=True),
            "another tensor as '0.weight'")
        tied = dense_model(hidden=5)
        tied.tied = tied[0].weight

        def untie(model):
            model[0].weight = torch.nn.Parameter(torch.zeros(5, 5))
        self.check_step_refused(untie, "another tensor as 'tied'", tied)

    def test_what_a_step_itself_does_is_no_write(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(5, 4),
                                    torch.nn.BatchNorm1d(4),
                                    torch.nn.Linear(4, 3))
        model[0].weight.data = model[0].weight.data.t().contiguous().t()
        optimizer, _, job = distributed(sgd, model)
        for step in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model, step)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            model.eval()
            copy.deepcopy(model)
            model.float().cpu().train()
        self.assertEqual(len(job.pushes), 3)

    def test_values_that_are_loaded_before_the_start_are_the_jobs(self):
        optimizer, model, job = distributed(sgd)
        model.load_state_dict(dense_model(1).state_dict())
        train(model, optimizer, 1)
        self.assertEqual(len(job.pushes), 1)

    def test_values_with_other_strides_are_refused_by_name(self):
        def transpose(model):
            model[0].weight.data = model[0].weight.data.t()
        self.check_step_refused(transpose, "'0.weight' have moved",
                                dense_model(hidden=5))

    def test_a_sparse_gradient_is_refused_by_name(self):
        model = torch.nn.Embedding(4, 2, sparse=True)
        optimizer, _, _ = distributed(sgd, model)
        optimizer.start()
        model(torch.tensor([1])).sum().backward()
        with self.assertRaisesRegex(muster.torch.ConfigError, "sparse"):
            optimizer.step()

    def test_values_that_have_moved_are_refused_by_name(self):
        optimizer, model, _ = distributed(sgd)
        loss_of(model, 0).backward()
        model[2].bias.data = torch.zeros(3)
        with self.assertRaisesRegex(muster.torch.ConfigError, "'2.bias'"):
            optimizer.step()

    def test_a_graph_of_former_values_cannot_go_backward(self):
        optimizer, model, _ = distributed(sgd)
        former = loss_of(model, 0)
        loss_of(model, 0).backward()
        optimizer.step()
        with self.assertRaisesRegex(RuntimeError, "inplace"):
            former.backward()


class StepTest(unittest.TestCase):

    def test_backward_passes_before_a_step_add_up(self):
        optimizer, model, job = distributed(sgd)
        for _ in range(3):
            loss_of(model, 0).backward()
        once = torch.autograd.grad(loss_of(model, 0), model[2].bias)[0]
        optimizer.step()
        numpy.testing.assert_allclose(job.pushes[0][0]["2.bias"], 3 * once,
                                      rtol=1e-5)

    def test_a_closures_loss_is_returned_and_pushed(self):
        optimizer, model, job = distributed(sgd)

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, 0)
            loss.backward()
            return loss
        loss = optimizer.step(closure)
        self.assertEqual(job.pushes[0][1], loss.item())
        self.assertIsNotNone(job.pushes[0][0]["2.bias"])

    def test_a_loss_that_is_given_is_pushed(self):
        optimizer, model, job = distributed(sgd)
        loss = loss_of(model, 0)
        loss.backward()
        self.assertIsNone(optimizer.step(loss=loss, examples=6))
        self.assertEqual(job.pushes[0][1], loss.item())
        self.assertEqual(job.examples, [6])

    def test_a_step_without_a_start_before_is_told_of_the_forward_pass(self):
        optimizer, model, job = distributed(sgd)
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        with self.assertRaisesRegex(muster.torch.ConfigError,
                                    r"first forward pass.*start\(\)"):
            optimizer.step()
        self.assertFalse(job.is_started)
        optimizer.start()
        optimizer.step()
        self.assertEqual(len(job.pushes), 1)

    def test_the_wrapped_optimizers_own_step_is_refused(self):
        model = dense_model()
        inner = sgd(model.parameters())
        muster.torch.DistributedOptimizer(inner, model, FakeJob())
        with self.assertRaisesRegex(muster.torch.ConfigError,
                                    "SGD is that of a DistributedOptimizer"):
            train(model, inner, 1)

    def test_a_copy_of_the_model_is_a_model_without_a_job(self):
        _, model, job = distributed(sgd)
        average = torch.optim.swa_utils.AveragedModel(model)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        for other in (copy.deepcopy(model), average,
                      torch.load(saved, weights_only=False)):
            loss_of(other, 0)
            self.assertFalse(job.is_started)
        train(model, sgd(other.parameters()), 1)
        self.assertTrue(job.is_started)

    def test_a_copy_of_the_optimizer_is_refused_by_name(self):
        optimizer, _, _ = distributed(sgd)
        for make in (copy.deepcopy, copy.copy, pickle.dumps):
            with self.assertRaisesRegex(muster.torch.ConfigError,
                                        "cannot be copied nor pickled"):
                make(optimizer)

    def test_a_step_after_the_end_changes_nothing(self):
        optimizer, model, job = distributed(sgd, job=FakeJob(steps=2))
        train(model, optimizer, 2)
        self.assertTrue(job.done)
        kept = model[0].weight.clone()
        train(model, optimizer, 2)
        self.assertEqual(len(job.pushes), 2)
        self.assertTrue(torch.equal(model[0].weight, kept))

    def test_gradients_may_be_set_to_none_or_zeros(self):
        for set_to_none in (True, False):
            optimizer, model, job = distributed(sgd)
            loss_of(model, 0).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=set_to_none)
            loss_of(model, 1).backward()
            optimizer.step()
            self.assertEqual(len(job.pushes), 2)

    def test_a_grad_scaler_is_refused_by_name(self):
        optimizer, model, _ = distributed(sgd)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(loss_of(model, 0)).backward()
        with self.assertRaisesRegex(muster.torch.ConfigError, "GradScaler"):
            scaler.step(optimizer)

    def test_autocast_trains(self):
        optimizer, model, job = distributed(sgd)
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, 0)
        loss.backward()
        optimizer.step()
        self.assertGreater(numpy.abs(job.pushes[0][0]["0.weight"]).max(), 0)

    def test_a_compiled_models_names_are_the_models(self):
        model = dense_model()
        compiled = torch.compile(model, backend="eager")
        optimizer, _, job = distributed(sgd, compiled)
        found = train(compiled, optimizer, 3)
        self.assertEqual(job.names[0], "0.weight")
        alone = dense_model()
        numpy.testing.assert_allclose(
            found, train(alone, sgd(alone.parameters()), 3), rtol=RELATIVE)

    def test_a_model_that_is_compiled_later_wants_a_start(self):
        optimizer, model, job = distributed(sgd)
        model.compile(backend="eager", fullgraph=True)
        with self.assertRaisesRegex(muster.torch.ConfigError,
                                    "compile before"):
            train(model, optimizer, 1)
        optimizer.start()
        train(model, optimizer, 3)
        self.assertEqual(len(job.pushes), 3)


class ScheduleTest(unittest.TestCase):

    def check_like_torch(self, make_scheduler, make=sgd):
        model = dense_model()
        optimizer = make(model.parameters())
        wanted = train(model, optimizer, 20, make_scheduler(optimizer))
        optimizer, own, job = distributed(make)
        found = train(own, optimizer, 20, make_scheduler(optimizer))
        numpy.testing.assert_allclose(found, wanted, rtol=RELATIVE)
        return job

    def test_each_push_carries_its_rate(self):
        job = self.check_like_torch(
            lambda o: torch.optim.lr_scheduler.StepLR(o, 5, gamma=0.1))
        numpy.testing.assert_allclose(
            [push[2] for push in job.pushes],
            [0.1 ** (step // 5) for step in range(20)])

    def test_a_warm_up_from_zero_moves_nothing_at_first(self):
        job = self.check_like_torch(lambda o: torch.optim.lr_scheduler.LambdaLR(
            o, lambda step: step / 10))
        self.assertGreater(job.pushes[0][2], 0)

    def test_adamw_under_a_cosine(self):
        self.check_like_torch(
            lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 20),
            lambda p: torch.optim.AdamW(p, lr=1e-2))

    def test_a_scheduler_of_the_wrapped_optimizer_works(self):
        model = dense_model()
        inner = sgd(model.parameters())
        scheduler = torch.optim.lr_scheduler.LinearLR(inner, 0.25)
        job = FakeJob()
        optimizer = muster.torch.DistributedOptimizer(inner, model, job)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train(model, optimizer, 2, scheduler)
        self.assertEqual(job.rule[1]["learning_rate"], 0.1)
        numpy.testing.assert_allclose([p[2] for p in job.pushes], [0.25, 0.4])

    def test_a_scheduler_that_changes_momentum_is_refused_by_name(self):
        def momentum(parameters):
            return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        optimizer, model, _ = distributed(momentum)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=1, total_steps=9)
        with self.assertRaisesRegex(muster.torch.ConfigError,
                                    "cycle_momentum=False"):
            train(model, optimizer, 3, scheduler)

    def check_setting_refused(self, words, **settings):
        optimizer, model, job = distributed(sgd)
        train(model, optimizer, 1)
        optimizer.param_groups[0].update(settings)
        with self.assertRaisesRegex(muster.torch.ConfigError, words) as raised:
            train(model, optimizer, 1)
        self.assertEqual(len(job.pushes), 1)
        return str(raised.exception)

    def test_a_weight_decay_that_is_changed_is_refused_by_name(self):
        words = self.check_setting_refused("weight_decay.* 0.1 and was 0",
                                           weight_decay=0.1)
        self.assertNotIn("OneCycleLR", words)

    def test_a_rate_that_is_none_is_refused_by_name(self):
        self.check_setting_refused("lr is -1", lr=-1.0)
        self.check_setting_refused("lr is nan", lr=float("nan"))

    def test_a_rate_that_the_job_refuses_is_named(self):
        class SyncJob(FakeJob):
            def push_from(self, *arguments):
                if arguments[-1] != 1:
                    raise muster.torch.ConfigError("one rate for all")
                super().push_from(*arguments)
        optimizer, model, _ = distributed(sgd, job=SyncJob())
        train(model, optimizer, 1)
        optimizer.param_groups[0]["lr"] = 0.05
        with self.assertRaisesRegex(
                muster.torch.ConfigError,
                "lr of the optimizer is 0.05 and was 0.1.*one rate for all"):
            train(model, optimizer, 1)

    def test_workers_must_have_the_decay_of_gradients_alike(self):
        for make, wanted in [
                (lambda p: torch.optim.Adam(p, weight_decay=0.25),
                 "weight_decay=0.25, added to gradients"),
                (lambda p: torch.optim.AdamW(p, weight_decay=0.25), ""),
                (sgd, "")]:
            optimizer, _, job = distributed(make)
            optimizer.start()
            self.assertEqual(job.arguments["alike"], wanted)

    def test_a_state_dict_has_the_groups_and_brings_the_rate_back(self):
        optimizer, model, job = distributed(sgd)
        train(model, optimizer, 1)
        state = optimizer.state_dict()
        self.assertEqual(state["state"], {})
        state["param_groups"][0]["lr"] = 0.05
        # As of an Adam that torch alone has stepped.
        state["state"] = {0: {"exp_avg": torch.zeros(8, 5)}}
        optimizer.load_state_dict(state)
        self.assertFalse(optimizer.state)
        train(model, optimizer, 1)
        self.assertEqual([push[2] for push in job.pushes], [1, 0.5])

    def test_a_group_that_is_added_later_is_refused(self):
        optimizer, _, _ = distributed(sgd)
        with self.assertRaisesRegex(muster.torch.ConfigError,
                                    "add_param_group"):
            optimizer.add_param_group({"params": [torch.zeros(1)]})


if __name__ == "__main__":
    harness.main()
