from __future__ import annotations

import pytest
from aws_cdk import aws_sagemaker as sagemaker

from seatrial.serving.rendered import RenderedConfig
from seatrial_cdk.model_container import model_container


def serving(weights_s3_uri: str) -> RenderedConfig:
    return RenderedConfig(
        engine="lmi",
        engine_version="27",
        image="763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130",
        payload_schema="lmi",
        files={},
        container_env={"HF_MODEL_ID": "/opt/ml/model"},
        secret_env={},
        weights_s3_uri=weights_s3_uri,
        isolated=True,
    )


@pytest.mark.parametrize(
    ("uri", "data_type", "compression"),
    [
        ("s3://bucket/model/", "S3Prefix", "None"),
        ("s3://bucket/model.tar.gz", "S3Object", "Gzip"),
        ("s3://bucket/model.tar.gz/", "S3Prefix", "None"),
    ],
)
@pytest.mark.parametrize("accept_eula", [True, False])
def test_a_prefix_is_mounted_and_an_archive_unpacked_each_with_its_own_licence(
    uri: str,
    data_type: str,
    compression: str,
    accept_eula: bool,  # noqa: FBT001 (a table's column)
) -> None:
    container = model_container(serving(uri), artifact=None, accept_eula=accept_eula)
    source = container.model_data_source
    assert isinstance(source, sagemaker.CfnModel.ModelDataSourceProperty)
    s3 = source.s3_data_source
    assert isinstance(s3, sagemaker.CfnModel.S3DataSourceProperty)
    assert (s3.s3_uri, s3.s3_data_type, s3.compression_type) == (uri, data_type, compression)
    access = s3.model_access_config
    assert isinstance(access, sagemaker.CfnModel.ModelAccessConfigProperty)
    assert access.accept_eula is accept_eula
