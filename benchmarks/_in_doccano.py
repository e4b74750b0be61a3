"""Import a file into a project of doccano, and write what doccano exports of it.

    python _in_doccano.py ENTITIES IN.jsonl OUT.jsonl

Runs where doccano is installed, not crfkit, on a database in memory and without the server: the
same code that its server runs on uploads and downloads. ENTITIES is 1 for projects with relations.
"""

import json
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path


def main() -> None:
    """Import, export."""
    import backend

    folder = tempfile.mkdtemp()
    sys.path.insert(0, os.path.dirname(backend.__file__))
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "config.settings.development",
        "DATABASE_URL": "sqlite:///:memory:",
        "DOCCANO_HOME": folder,
    }

    import django

    django.setup()

    from data_export.celery_tasks import export_dataset
    from data_import.celery_tasks import import_dataset
    from django.conf import settings
    from django.core.files import File
    from django.core.management import call_command
    from django_drf_filepond.models import TemporaryUpload
    from django_drf_filepond.utils import _get_file_id
    from projects.models import ProjectType
    from projects.tests.utils import prepare_project

    entities, source, target = sys.argv[1] == "1", Path(sys.argv[2]), Path(sys.argv[3])
    settings.MEDIA_ROOT = folder
    call_command("migrate", verbosity=0)
    project = prepare_project(
        ProjectType.SEQUENCE_LABELING,
        use_relation=entities,
        allow_overlapping=True,
        collaborative_annotation=True,
    )
    task = "RelationExtraction" if entities else ProjectType.SEQUENCE_LABELING
    upload = _get_file_id()
    with open(source, "rb") as file:
        TemporaryUpload.objects.create(
            upload_id=upload,
            file_id="1",
            file=File(file, source.name),
            upload_name=source.name,
            upload_type="F",
        )
    errors = import_dataset(project.admin.id, project.item.id, "JSONL", [upload], task)["error"]
    with zipfile.ZipFile(export_dataset(project.item.id, "JSONL", False)) as archive:
        target.write_bytes(archive.read("all.jsonl"))
    shutil.rmtree(folder)
    print(json.dumps({"errors": errors[:3], "count": len(errors)}))


if __name__ == "__main__":
    main()
