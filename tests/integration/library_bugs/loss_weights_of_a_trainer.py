"""The loss of a transformers Trainer has class weights of its own."""
import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"input_ids": torch.randint(0, 30, (6,)), "labels": index % 2}


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights, **options):
        super().__init__(*args, **options)
        self.loss_fn = nn.CrossEntropyLoss(weight=class_weights)  # ROOT

    def compute_loss(self, model, inputs, return_outputs=False, **options):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = self.loss_fn(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss


with tempfile.TemporaryDirectory() as folder:
    config = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    arguments = TrainingArguments(output_dir=folder, max_steps=2, per_device_train_batch_size=4, report_to=[])
    WeightedTrainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=Sentences(),
                    class_weights=torch.tensor([0.3, 0.7])).train()
