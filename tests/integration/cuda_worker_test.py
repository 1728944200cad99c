"""What a build with CUDA does where there is no card, and what it links."""

import os
import re
import shutil
import subprocess
import unittest

from tests.integration import harness

# Looked up when the program runs, never linked: it starts without them.
NVIDIA_LIBRARIES = re.compile(r"lib(cuda|cudart|cudnn|cublas\w*|nccl)\.so")


def linked_libraries(binary):
    return subprocess.run(["ldd", binary], check=True, capture_output=True,
                          text=True).stdout


def has_cuda_runtime(binary):
    """Whether libcudart is linked in: its messages are, even if stripped."""
    with open(binary, "rb") as file:
        return b"cudaErrorMemoryAllocation" in file.read()


class CudaWorkerTest(harness.TestCase):

    def train(self, *flags):
        training = self.write("training.textproto",
                              harness.softmax_regression(steps=5))
        return self.run_to_end("worker", [
            harness.worker(), "--standalone", "--training=" + training,
            *flags])

    def test_no_binary_wants_libraries_of_nvidia(self):
        for binary in (harness.worker(), harness.ps_server()):
            self.assertNotRegex(linked_libraries(binary), NVIDIA_LIBRARIES)

    def test_a_ps_links_no_cuda(self):
        self.assertTrue(has_cuda_runtime(harness.worker()))
        self.assertFalse(has_cuda_runtime(harness.ps_server()))

    def test_looks_for_its_libraries_beside_itself(self):
        for binary in (harness.worker(), harness.ps_server()):
            output = subprocess.run(["readelf", "-d", binary], check=True,
                                    capture_output=True, text=True).stdout
            self.assertRegex(output, r"RPATH.*\[[^]]*\$ORIGIN/\.\./lib")


@unittest.skipIf(os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi"),
                 "there may be a card")
class NoCardTest(CudaWorkerTest):

    def test_lists_why_cuda_cannot_be_used(self):
        code, output = self.run_to_end("worker",
                                       [harness.worker(), "devices"])
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^cuda\n  cuda:0: unusable: .")

    def test_trains_on_the_cpu_and_says_so_in_one_line(self):
        code, output = self.train()
        self.assertEqual(code, 0, output)
        self.assertEqual(
            len(re.findall(r"cuda:0 cannot be used: .*; cpu:0 is used",
                           output)), 1, output)

    def test_a_named_device_is_refused(self):
        code, output = self.train("--device=cuda")
        self.assertEqual(code, 2, output)
        self.assertIn("--device=cuda: cuda:0 cannot be used: ", output)

    def test_a_library_path_that_is_no_folder_is_named(self):
        code, output = self.train("--device=cuda",
                                  "--gpu_library_path=/nowhere")
        self.assertEqual(code, 2, output)
        self.assertIn("--gpu_library_path: wanted folders, found '/nowhere'",
                      output)


if __name__ == "__main__":
    harness.main()
