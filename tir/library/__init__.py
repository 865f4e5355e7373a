"""Programs with their schedules, ready to build: each has a function for the computation, and one for the schedule.

>>> import tir
>>> from tir.library import gemm
>>> sch = gemm.schedule_gemm(tir.Schedule(gemm.gemm(64, 48, 32)))
"""
