"""Checks Kubernetes manifests strictly, without a cluster, and prints them.

    read_manifests.py FILE...

prints {"documents": [...], "problems": ["FILE: ..."]} as JSON. A JobSet's
schema lets unknown fields pass, so that what was understood is compared with
what stands there; the Jobs in it are checked as Jobs. Packages of PyPI:
manifest_requirements.txt.
"""

import json
import sys

import kubernetes_validate
import yaml
from kubeflow_trainer_api import models


def missing(given, understood, path):
    """The paths of what `given` has and `understood` has not."""
    if isinstance(given, dict):
        for key, value in given.items():
            where = "%s.%s" % (path, key)
            if not isinstance(understood, dict) or key not in understood:
                yield where
            else:
                yield from missing(value, understood[key], where)
    elif isinstance(given, list):
        for i, value in enumerate(given):
            if not isinstance(understood, list) or i >= len(understood):
                yield "%s[%d]" % (path, i)
            else:
                yield from missing(value, understood[i], "%s[%d]" % (path, i))


def problems_of(document):
    if document.get("kind") != "JobSet":
        try:
            kubernetes_validate.validate(document, "1.37", strict=True)
        except kubernetes_validate.ValidationError as error:
            yield "%s: %s" % (".".join(map(str, error.path)), error.message)
        return
    try:
        understood = models.JobsetV1alpha2JobSetSpec.from_dict(
            document["spec"]).to_dict()
    except Exception as error:  # pydantic's, of several classes
        yield str(error)
        return
    jobs = document["spec"]["replicatedJobs"]
    for where in missing(document["spec"], understood, "spec"):
        if ".template.spec." not in where:
            yield "unknown field " + where
    for job in jobs:
        yield from problems_of({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": job["name"]}, "spec": job["template"]["spec"]})


def main(paths):
    documents, problems = [], []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for document in yaml.safe_load_all(file):
                documents.append(document)
                problems += ["%s: %s: %s" % (path, document.get("kind"), text)
                             for text in problems_of(document)]
    print(json.dumps({"documents": documents, "problems": problems}))


if __name__ == "__main__":
    main(sys.argv[1:])
