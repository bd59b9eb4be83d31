"""Fixed points: rooflines against arithmetic by hand, measurements behind their rooflines, PIM devices as files say."""

from dataclasses import replace

import pytest

from autotune.problem_spec import import_workload
from autotune.reference_points import (
    StepTraffic,
    gpus_needed,
    reference_points,
    roofline_ns,
    simulated_reference,
    step_traffic,
)
from compiler.linear import LinearShape
from compiler.passes import run_passes
from compiler.tasks import tasks_of
from compiler.traffic import traffic_of
from compiler.workload import StoredFormats, workload_of
from configs.device import Basis, load_device
from configs.errors import UserError
from configs.gpu import load_gpus
from configs.number_format import NumberFormat
from tests.tiny_models import built_in_graph

GPUS = load_gpus()
H100 = GPUS.gpu("h100-sxm")


@pytest.fixture(scope="module")
def llama():
    return import_workload("llama", 1, 4096)


@pytest.fixture(scope="module")
def mixtral():
    return import_workload("mixtral", 4, 64)


def test_llama_reads_15_gb_of_weights_and_half_a_gib_of_cache(llama):
    traffic = step_traffic(llama)
    layer = 6144 * 4096 + 4096 * 4096 + 3 * 14336 * 4096
    assert traffic.weight_bytes == 2 * (32 * layer + 128256 * 4096 + 4096)
    assert traffic.weight_bytes == pytest.approx(15.01e9, rel=1e-3)
    assert traffic.cache_bytes == 2**29
    assert traffic.operations == 2 * (32 * layer + 128256 * 4096) + 32 * 4 * 32 * 128 * 4096


def test_traffic_is_that_of_the_graph_but_for_the_norms(llama):
    graph = run_passes(built_in_graph("llama"))
    counted, found = traffic_of(graph), step_traffic(llama)
    assert found.weight_bytes == counted.weight_bytes_per_token - 65 * 4096 * 2
    assert found.cache_bytes == counted.kv_read_bytes_per_token
    assert found.operations == counted.flops_per_token
    assert step_traffic(workload_of(tasks_of(graph), "llama-3.1-8b", 1, 4096)) == found


def test_the_roofline_is_bytes_over_bandwidth_where_memory_binds(llama):
    by_hand_ms = (15.01e9 + 0.5 * 2**30) / 3352e9 * 1e3
    points = {point.name: point for point in reference_points(llama) if point.kind == "roofline"}
    assert points["h100-sxm"].latency_ns * 1e-6 == pytest.approx(by_hand_ms, rel=1e-3)
    assert points["h100-sxm"].energy_pj == pytest.approx(points["h100-sxm"].latency_ns * 700e3)
    assert points["h100-sxm"].area_mm2 == 814 + 40 * 121
    assert set(points) == {"a100-80gb", "h100-sxm", "h200-sxm"}


def test_the_roofline_is_operations_over_peak_where_compute_binds():
    traffic = StepTraffic(weight_bytes=1e6, cache_bytes=0, operations=989.4e12)
    assert roofline_ns(traffic, H100) == pytest.approx(1e9)
    assert roofline_ns(traffic, H100, count=4) == pytest.approx(0.25e9)


def test_a_larger_batch_reads_weights_once_and_every_cache():
    one, eight = (step_traffic(import_workload("llama", batch, 4096)) for batch in (1, 8))
    assert eight.weight_bytes - one.weight_bytes == 7 * 4096 * 2
    assert eight.cache_bytes == 8 * one.cache_bytes
    assert eight.operations == 8 * one.operations


def test_another_context_changes_the_cache_alone(llama):
    whole, short = step_traffic(llama), step_traffic(llama, 1024)
    assert short.cache_bytes == whole.cache_bytes / 4
    assert short.weight_bytes == whole.weight_bytes


def test_experts_are_counted_as_uniform_routing_chooses_them(mixtral):
    more = step_traffic(mixtral).weight_bytes - step_traffic(replace(mixtral, batch=1)).weight_bytes
    experts = 32 * 3 * 4096 * 14336 * 2 * 8
    assert more == pytest.approx(experts * ((1 - 0.75**4) - 0.25))


def test_as_many_gpus_as_hold_the_model(llama, mixtral):
    assert gpus_needed(llama, H100) == 1
    assert gpus_needed(mixtral, H100) == 2
    point = next(point for point in reference_points(mixtral) if point.name == "h100-sxm")
    assert point.count == 2
    assert point.area_mm2 == 2 * (814 + 40 * 121)
    assert point.latency_ns == pytest.approx(roofline_ns(step_traffic(mixtral), H100) / 2)


@pytest.mark.parametrize("model", ["llama", "llama-2-7b"])
@pytest.mark.parametrize("weights", ["bf16", "fp16", "int8", "fp8", "int4"])
def test_nothing_measured_is_faster_than_its_roofline(model, weights):
    workload = import_workload(model, 1, 4096, StoredFormats(weights=NumberFormat(weights)))
    measured = [point for point in reference_points(workload) if point.kind == "measured"]
    assert all(0.2 < point.roofline_share < 1 for point in measured)
    assert measured or (model, weights) == ("llama-2-7b", "fp8")


def test_the_nearest_measured_context_is_taken():
    workload = import_workload("llama-2-7b", 1, 4096)

    def contexts(context):
        points = reference_points(replace(workload, context=context))
        return [point.context for point in points if point.name == "a100-80gb lmdeploy"]

    assert (contexts(1024), contexts(2048), contexts(4096)) == ([1152], [2112], [3072])


def test_what_was_measured_otherwise_is_no_match(llama):
    def measured(workload):
        return [point for point in reference_points(workload) if point.kind == "measured"]

    assert measured(llama)
    assert not measured(replace(llama, batch=2))
    assert not measured(replace(llama, queries=2))
    assert not measured(import_workload("llama", 1, 4096, StoredFormats(cache=NumberFormat.INT8)))


@pytest.mark.parametrize(
    ("name", "gib", "peak_gb_per_s"),
    # Banks x 32 B of a column x clock / multiply cadence, over all channels.
    [("attacc", 16, 32 * 32 * 32 / (6 * 0.769)), ("hbm-pim-like", 2, 16 * 8 * 32 / 4)],
)
def test_base_figures_of_the_reference_devices(name, gib, peak_gb_per_s):
    device = load_device(name)
    organisation = device.organisation
    assert organisation.capacity_bytes == gib * 2**30
    column = organisation.channels * organisation.banks * organisation.column_bytes
    assert column / device.nanoseconds(device.timing["nCCDMAC"]) == pytest.approx(peak_gb_per_s)
    assert device.energy is not None
    assert device.energy.basis is Basis.TYPICAL


def test_dies_of_the_reference_devices_have_their_published_size():
    for name, die_mm2, unit_share in (("attacc", 121, 0.109), ("hbm-pim-like", 88.9, 0.256)):
        area, organisation = load_device(name).area, load_device(name).organisation
        assert area is not None
        units = organisation.channels * organisation.banks * area.unit_mm2.nominal / area.dies
        cells = organisation.capacity_bytes / 2**30 * area.dram_mm2_per_gib.nominal / area.dies
        # AttAcc adds its units to the plain die; the HBM-PIM die is no larger than the plain one.
        assert (cells if name == "attacc" else cells + units) == pytest.approx(die_mm2, rel=0.005)
        assert units / die_mm2 == pytest.approx(unit_share, rel=0.01)


def test_cadence_under_the_power_cap_is_that_of_the_file():
    for name in ("attacc", "hbm-pim-like"):
        device = load_device(name)
        assert device.energy is not None
        assert device.power is not None
        power_limited = -(-device.energy.all_bank_mac_pj // (device.power.mac_cap_w_per_channel * device.cycle_ps))
        assert max(device.timing["nCCDL"], power_limited) == device.timing["nCCDMAC"]


@pytest.mark.parametrize("name", ["gddr6-aim", "hbm-pim-like", "attacc"])
def test_a_simulated_point_is_slower_than_its_peak_and_has_all_figures(llama, name):
    device = load_device(name)
    point = simulated_reference(llama, device)
    organisation = device.organisation
    column = organisation.channels * organisation.banks * organisation.column_bytes * point.count
    peak = column / device.nanoseconds(device.timing["nCCDMAC"])
    assert point.latency_ns > step_traffic(llama).moved_bytes / peak
    assert point.energy_pj is not None
    assert point.area_mm2 is not None
    assert point.count * organisation.capacity_bytes > step_traffic(llama).moved_bytes


def test_a_datasheet_energy_is_not_modelled_where_constants_are_typical(llama):
    assert simulated_reference(llama, load_device("attacc"), basis=Basis.DATASHEET).energy_pj is None
    both = [simulated_reference(llama, load_device("gddr6-aim"), basis=basis).energy_pj for basis in Basis]
    assert both[0] is not None
    assert both[1] is not None
    assert both[0] > both[1]


def test_a_device_that_does_not_take_the_format_says_so():
    workload = import_workload("llama", 1, 4096, StoredFormats(weights=NumberFormat.INT8))
    assert any(isinstance(shape, LinearShape) for shape in workload.schedulables)
    with pytest.raises(UserError, match="int8"):
        simulated_reference(workload, load_device("attacc"))


def test_a_mapping_that_no_search_knows_is_replaced_by_the_plain_one():
    # Eight sequences reuse a column of 32 in 8 pieces of 4, which is below the knob's values.
    eight = import_workload("llama", 8, 4096)
    assert simulated_reference(eight, load_device("hbm-pim-like")).source.endswith("hand mapping")
    assert simulated_reference(eight, load_device("attacc")).source.endswith("overlapped mapping")


def test_more_devices_are_taken_where_the_mapping_pads_more():
    device, eight = load_device("gddr6-aim"), import_workload("llama", 8, 4096)
    as_needed, on_two = simulated_reference(eight, device), simulated_reference(eight, device, devices=2)
    assert (as_needed.count, on_two.count) == (3, 2)
    assert as_needed.source.endswith("overlapped mapping")
    assert on_two.source.endswith("hand mapping")
    with pytest.raises(UserError, match="capacity of 1 device"):
        simulated_reference(eight, device, devices=1)
