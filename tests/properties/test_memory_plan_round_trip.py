"""Does the text of any memory plan parse back to the same plan, and do the bytes of any room add up?"""

from hypothesis import assume, example, given
from hypothesis import strategies as st

from compiler.attention import AttentionShape, attention_geometry
from compiler.legality import legal, rules
from compiler.linear import LinearShape, linear_rows
from compiler.memory.plan import (
    CachePages,
    Held,
    Loading,
    MemoryPlan,
    Place,
    PlannedScenario,
    PlannedSystem,
    Region,
)
from compiler.memory.rooms import (
    PageSize,
    Room,
    RoomBytes,
    Tensor,
    attention_rooms,
    embedding_room,
    linear_rooms,
    page_sizes,
)
from compiler.memory.text import parse_plan, print_plan
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, pool_shape
from compiler.workload import EmbeddingShape
from configs.device import load_device
from configs.number_format import CACHE_STORAGE, NumberFormat
from tests.unit_devices import unit_device

AIM = load_device("gddr6-aim")
DEVICES = st.sampled_from((AIM, unit_device(column_accesses=4), unit_device(2, 2, 2)))
COUNTS = st.integers(0, 10**12)
SIZES = st.integers(1, 64)
NAMES = st.text(max_size=12) | st.from_regex(r"[a-z_]{1,8}(\.[0-9]{1,2})?", fullmatch=True)
FLOATS = st.floats(0, 1e18, allow_nan=False)
TENSORS = st.sampled_from(Tensor)
SYSTEMS = st.builds(PlannedSystem, NAMES, SIZES, SIZES, SIZES, st.just(1 << 20), st.sampled_from((512, 2048)))
SCENARIOS = st.builds(PlannedScenario, NAMES, SIZES, SIZES, SIZES, st.none() | COUNTS, st.none() | COUNTS)
PAGES = st.builds(
    CachePages, NAMES, st.builds(PageSize, TENSORS, SIZES, SIZES), COUNTS, COUNTS, SIZES, COUNTS, COUNTS, COUNTS
)
LOADINGS = st.builds(Loading, NAMES, COUNTS, FLOATS, COUNTS, FLOATS)
HELD = st.builds(Held, NAMES, NAMES, st.sampled_from(Place), COUNTS)


@st.composite
def plans(draw):
    system = draw(SYSTEMS)
    regions, row = [], 0
    for _ in range(draw(st.integers(0, 5))):
        row += draw(st.integers(0, 3))
        rows, groups = draw(st.integers(1, 9)), draw(st.integers(1, system.pool_channels))
        parts = draw(st.integers(1, system.pool_channels // groups))
        left = rows * system.bytes_of_a_row
        shares = []
        for _ in range(4):
            shares.append(draw(st.integers(0, left)))
            left -= shares[-1]
        room = Room(draw(TENSORS), draw(st.integers(0, 3)), rows, groups, parts, RoomBytes(*shares, left))
        copy = tuple(draw(st.lists(st.integers(0, 99), min_size=1, max_size=2)))
        regions.append(Region(draw(NAMES), copy, row, room))
        row += rows
    lists = (tuple(draw(st.lists(items, max_size=3))) for items in (PAGES, LOADINGS, HELD))
    return MemoryPlan(draw(SCENARIOS), system, *lists, tuple(draw(st.permutations(regions))))


AWKWARD = MemoryPlan(
    PlannedScenario("a model", 1, 1, 1, None, None),
    PlannedSystem("# device", 1, 1, 1, 1, 512),
    (),
    (Loading("first\nsecond\r-", 0, 0.0, 0, 0.0),),
    (Held("-", '"', Place.HOST, 0),),
    (),
)


@given(plans())
@example(AWKWARD)
def test_printed_plan_parses_back_to_the_same_plan(plan):
    assert parse_plan(print_plan(plan)) == plan


def checked(rooms, pool):
    """Return the rows of rooms whose bytes add up and are none of them below 0."""
    for room in rooms:
        assert room.size.total == room.rows * pool.channels * pool.banks * AIM.organisation.row_bytes
        assert min(getattr(room.size, name) for name in RoomBytes.__slots__) >= 0
        assert room.groups * room.parts <= pool.channels
    return sum(room.rows for room in rooms)


@given(
    st.builds(
        LinearShape,
        st.just("y"),
        st.lists(st.integers(1, 3000), min_size=1, max_size=3).map(tuple),
        st.integers(1, 5000),
        st.integers(1, 4),
        weights=st.sampled_from(NumberFormat),
    ),
    st.builds(
        LinearSchedule,
        reduction_split=st.sampled_from((1, 2, 4, 8)),
        segment_columns=st.integers(1, 64),
        reuse=st.sampled_from((1, 2, 4)),
        registers=st.sampled_from((4, 16, 32)),
        order=st.sampled_from(LoopOrder),
        merged=st.booleans(),
    ),
    st.integers(1, 3),
    DEVICES,
)
def test_rooms_of_matrices_add_up(shape, schedule, devices, device):
    pool = pool_shape(device, devices)
    assume(legal(schedule.place, rules(shape, schedule, pool)))
    rows = checked(linear_rooms(shape, schedule, pool, device.organisation), pool)
    assert rows == linear_rows(shape, schedule, pool)


@given(
    st.builds(
        AttentionShape,
        st.just("attention"),
        batch=st.integers(1, 5),
        heads=st.just(8),
        kv_heads=st.sampled_from((1, 2, 8)),
        head_dim=st.sampled_from((16, 80, 128)),
        tokens=st.integers(1, 5000),
        capacity=st.integers(0, 9000),
        cache=st.sampled_from(tuple(CACHE_STORAGE)),
    ),
    st.builds(
        AttentionSchedule,
        token_split=st.sampled_from((1, 2, 8, 32)),
        context_segment_columns=st.sampled_from((1, 8, 48, 64)),
        registers=st.sampled_from((4, 32)),
    ),
    st.integers(1, 3),
    DEVICES,
)
def test_rooms_of_caches_add_up_and_are_whole_pages(shape, schedule, devices, device):
    pool = pool_shape(device, devices)
    assume(legal(schedule.place, rules(shape, schedule, pool)))
    rooms = attention_rooms(shape, schedule, pool, device.organisation)
    sizes = attention_geometry(shape, schedule, pool)
    assert checked(rooms, pool) == sizes.rows
    for room, page in zip(rooms, page_sizes(shape, schedule, pool), strict=True):
        pages = -(-shape.room // page.tokens)
        assert room.rows == sizes.units_per_channel * pages * page.rows


@given(st.integers(1, 200_000), st.integers(1, 9000), st.integers(1, 3), DEVICES)
def test_rooms_of_tables_add_up(vocabulary, width, devices, device):
    pool = pool_shape(device, devices)
    checked([embedding_room(EmbeddingShape("embedding", vocabulary, width, 1), pool, device.organisation)], pool)
