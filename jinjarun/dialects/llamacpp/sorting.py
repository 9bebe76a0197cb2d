"""The order that std::sort leaves, for any comparison: llama.cpp sorts with one that is no order on mixed types.

GNU's libstdc++ is what the recordings were made with: quicksort by the median of three down to runs of 16, heap sort
where that goes too deep, insertion sort over all at the end. With a proper order and no equal items any sort gives the
same; this one also leaves equal and incomparable items where that one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinjarun.runtime.run import Run

    Less = Callable[[Any, Any], bool]

RUN = 16


def std_sort(run: Run, items: Sequence[Any], less: Less) -> list[Any]:
    """A sorted copy of `items`; `less` charges for itself and for the move that may follow."""
    run.items(len(items))
    result = list(items)
    if result:
        _introsort(result, 0, len(result), 2 * (len(result).bit_length() - 1), less)
        end = min(RUN, len(result))
        _insertion_sort(result, 0, end, less)
        for i in range(end, len(result)):
            _insert(result, i, less)
    return result


def _introsort(a: list[Any], first: int, last: int, depth: int, less: Less) -> None:
    while last - first > RUN:
        if depth == 0:
            _heap_sort(a, first, last, less)
            return
        depth -= 1
        cut = _partition(a, first, last, less)
        _introsort(a, cut, last, depth, less)
        last = cut


def _partition(a: list[Any], first: int, last: int, less: Less) -> int:
    middle = first + (last - first) // 2
    pivot = _median(a, first + 1, middle, last - 1, less)
    a[first], a[pivot] = a[pivot], a[first]
    low, high = first + 1, last
    while True:
        while less(_at(a, low), a[first]):
            low += 1
        high -= 1
        while less(a[first], _at(a, high)):
            high -= 1
        if low >= high:
            return low
        a[low], a[high] = a[high], a[low]
        low += 1


def _at(a: list[Any], index: int) -> Any:
    if not 0 <= index < len(a):
        raise RenderError("sorting these values reads beyond the list in llama.cpp: they have no order")
    return a[index]


def _median(a: list[Any], x: int, y: int, z: int, less: Less) -> int:
    if less(a[x], a[y]):
        if less(a[y], a[z]):
            return y
        return z if less(a[x], a[z]) else x
    if less(a[x], a[z]):
        return x
    return z if less(a[y], a[z]) else y


def _heap_sort(a: list[Any], first: int, last: int, less: Less) -> None:
    heap = a[first:last]
    size = len(heap)
    for parent in range((size - 2) // 2, -1, -1):
        _adjust(heap, parent, size, heap[parent], less)
    for end in range(size - 1, 0, -1):
        value = heap[end]
        heap[end] = heap[0]
        _adjust(heap, 0, end, value, less)
    a[first:last] = heap


def _adjust(heap: list[Any], hole: int, size: int, value: Any, less: Less) -> None:
    """Put `value` into the heap of `size` items, from `hole` down and then up again."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if less(heap[child], heap[child - 1]):
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and less(heap[parent], value):
        heap[hole] = heap[parent]
        hole = parent
        parent = (hole - 1) // 2
    heap[hole] = value


def _insertion_sort(a: list[Any], first: int, last: int, less: Less) -> None:
    for i in range(first + 1, last):
        if less(a[i], a[first]):
            value = a.pop(i)
            a.insert(first, value)
        else:
            _insert(a, i, less)


def _insert(a: list[Any], i: int, less: Less) -> None:
    value = a[i]
    while less(value, _at(a, i - 1)):
        a[i] = a[i - 1]
        i -= 1
    a[i] = value
