# ruff: noqa
# fmt: off
from tir.ops import *
from tir.topi import image as image
from tir.topi import nn as nn
from tir.topi import testing as testing
from tir.topi.own import (
    arange as arange,
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    cumprod as cumprod,
    cumsum as cumsum,
    flip as flip,
    meshgrid as meshgrid,
    prod as prod,
    strided_slice as strided_slice,
    sum as sum,
)
