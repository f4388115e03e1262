"""transformers' Trainer, with evaluations and checkpoints during the training, and the best one loaded at its end."""

import sys

import transformers
from clean_parts import STEPS
from library_report import Rows, small_gpt2, token_rows

FOLDER = sys.argv[2]


def main():
    arguments = transformers.TrainingArguments(
        output_dir=FOLDER, per_device_train_batch_size=2, per_device_eval_batch_size=1, max_steps=STEPS, bf16=True,
        eval_strategy="steps", save_strategy="steps", eval_steps=10, save_steps=10, save_total_limit=1,
        load_best_model_at_end=True, logging_steps=5, report_to=[], disable_tqdm=True)
    trainer = transformers.Trainer(
        model=small_gpt2(), args=arguments, train_dataset=Rows(token_rows(24)),
        eval_dataset=Rows(token_rows(2 * STEPS, seed=2)),
        callbacks=[transformers.EarlyStoppingCallback(early_stopping_patience=STEPS)])
    trainer.train()
    print(trainer.evaluate())


main()
