# source: huggingface/setfit#339
# mechanism: of two lists that a loop fills in step one is brought to the host; `.numpy()` is called of both later
# phase: evaluation; Tensor.numpy
# expect: raises
import torch
from torch import nn


def predict(model, batches):
    predictions = []
    targets = []
    with torch.inference_mode():
        for batch in batches:
            image = batch["image"].to("cuda")
            predictions.append(model(image).argmax(dim=1))  # ROOT
            targets.append(batch["label"].cpu())
    y_pred = torch.cat(predictions)  # ALSO
    y_true = torch.cat(targets)
    return y_true.numpy(), y_pred.numpy()  # RAISE  # ALSO


model = nn.Linear(4, 3).to("cuda")
loader = [{"image": torch.rand(5, 4), "label": torch.randint(3, (5,), device="cuda")} for _ in range(3)]
predict(model, loader)
