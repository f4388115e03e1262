"""What other code does with a value of the same making: another caller that moves what a processor computes, the line that
stores the list which a loop goes through, and the attribute that keeps what a value was computed from."""

from evidence_programs import PROLOGUE, Evidence

ALIKE = PROLOGUE + """
import copy


class Processor:
    def __call__(self, images):
        return torch.cat([image * 2 for image in images]).split(2)


class Detector:
    def run(self, processor, images):
        return [batch.to("cuda") for batch in processor(images)]  # @moved


class Classifier:
    def run(self, processor, images):
        batches = processor(images)  # @asked
        return [batch + gpu() for batch in batches]  # @alike

    def run_itself(self, processor, images):
        batches = processor(images)
        for batch in batches:
            scaled = batch - 1
            batch.to("cuda")
            scaled + gpu()  # @itself


class Average:
    def __init__(self, values):
        self.kept = [value.clone() for value in values]

    def update(self):
        for kept in self.kept:
            kept + gpu()  # @listed

    def restore(self, state):
        state = copy.deepcopy(state)
        self.kept = state["kept"]  # @stored


class Schedule:
    def __init__(self):
        self.alphas = torch.rand(3)


class Loss:
    def __init__(self, schedule):
        self.alphas = schedule.alphas  # @kept

    def weights(self):
        ratio = self.alphas.sqrt() ** 2
        ratio + gpu()  # @of kept


images = [torch.rand(1, 3) for _ in range(4)]
Detector().run(Processor(), images)
attempt(Classifier().run, Processor(), images)
attempt(Classifier().run_itself, Processor(), images)
average = Average([torch.rand(3)])
average.restore({"kept": [torch.rand(3)]})
attempt(average.update)
loss = Loss(Schedule())
attempt(loss.weights)
"""


def test_another_caller_s_move_of_what_a_processor_computes_is_told(run_python):
    evidence = Evidence(run_python(ALIKE, sim=1), ALIKE)
    assert [mark for mark, _ in evidence.of("alike", "computed-alike-moved-at")] == ["moved"]
    assert [mark for mark, _ in evidence.of("alike", "asked-apart-at")] == ["asked"]
    # Who computes with it has asked for nothing by that line.
    assert evidence.of("itself", "computed-alike-moved-at") == []


def test_the_line_that_stores_the_list_of_a_loop_is_told(run_python):
    evidence = Evidence(run_python(ALIKE, sim=1), ALIKE)
    assert evidence.of("listed", "list-stored-at") == [("stored", "Average.kept")]


def test_the_attribute_that_keeps_what_a_value_was_computed_from_is_told(run_python):
    evidence = Evidence(run_python(ALIKE, sim=1), ALIKE)
    assert evidence.of("of kept", "kept-source-at") == [("kept", "self.alphas")]
