# ruff: noqa
# fmt: off
from tir.ops.nn import *
from tir.topi.own_nn import (
    conv1d as conv1d,
    conv2d_NCHWc as conv2d_NCHWc,
    conv2d_nhwc as conv2d_nhwc,
    conv3d_ndhwc as conv3d_ndhwc,
    deformable_conv2d_nchw as deformable_conv2d_nchw,
    deformable_conv2d_nhwc as deformable_conv2d_nhwc,
)
