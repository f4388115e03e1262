# source: lcswillems/rl-starter-files PR#47
# mechanism: an agent that keeps the recurrent memory on the device multiplies it after each step by a mask of finished episodes made on the host
# expect: raises
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn
from torch.distributions import Categorical

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def preprocess_obss(obss: List[Dict[str, list]], device: Optional[torch.device] = None) -> Dict[str, torch.Tensor]:
    image = torch.tensor([o["image"] for o in obss], dtype=torch.float, device=device)
    direction = torch.tensor([o["direction"] for o in obss], device=device)
    return {"image": image, "direction": direction}


class ACModel(nn.Module):
    def __init__(self, image_dim: int, n_actions: int, use_memory: bool = True, embedding: int = 16):
        super().__init__()
        self.use_memory, self.embedding = use_memory, embedding
        self.image = nn.Sequential(nn.Linear(image_dim, embedding), nn.ReLU())
        self.direction = nn.Embedding(4, embedding)
        self.memory_rnn = nn.LSTMCell(embedding, embedding)
        self.actor, self.critic = nn.Linear(embedding, n_actions), nn.Linear(embedding, 1)

    @property
    def memory_size(self) -> int:
        return 2 * self.embedding

    def forward(self, obs: Dict[str, torch.Tensor], memory: torch.Tensor) -> Tuple[Categorical, torch.Tensor, torch.Tensor]:
        x = self.image(obs["image"]) + self.direction(obs["direction"])
        if self.use_memory:
            hidden = self.memory_rnn(x, tuple(memory.chunk(2, dim=1)))
            x, memory = hidden[0], torch.cat(hidden, dim=1)
        return Categorical(logits=self.actor(x)), self.critic(x).squeeze(1), memory


class Agent:
    """Chooses actions and keeps the memory of several environments."""

    def __init__(self, acmodel: ACModel, status: Dict[str, torch.Tensor], num_envs: int, argmax: bool = False):
        self.acmodel, self.argmax, self.num_envs = acmodel, argmax, num_envs
        if self.acmodel.use_memory:
            self.memories = torch.zeros(num_envs, acmodel.memory_size, device=device)
        self.acmodel.load_state_dict(status)
        self.acmodel.to(device)
        self.acmodel.eval()

    def get_actions(self, obss: List[Dict[str, list]]) -> List[int]:
        preprocessed = preprocess_obss(obss, device=device)
        with torch.no_grad():
            dist, _, memories = self.acmodel(preprocessed, self.memories)
        if self.acmodel.use_memory:
            self.memories = memories
        actions = dist.probs.argmax(1) if self.argmax else dist.sample()
        return actions.tolist()

    def analyze_feedbacks(self, rewards: List[float], dones: List[bool]) -> None:
        if self.acmodel.use_memory:
            masks = 1 - torch.tensor(dones, dtype=torch.float).unsqueeze(1)  # ROOT
            self.memories *= masks  # RAISE # ALSO


class ParallelEnv:
    def __init__(self, num_envs: int, image_dim: int, horizon: int):
        self.num_envs, self.image_dim, self.horizon = num_envs, image_dim, horizon
        self.gen = torch.Generator().manual_seed(1)
        self.steps = [i % horizon for i in range(num_envs)]

    def _observe(self) -> List[Dict[str, list]]:
        images = torch.rand(self.num_envs, self.image_dim, generator=self.gen).tolist()
        return [{"image": image, "direction": s % 4} for image, s in zip(images, self.steps)]

    def reset(self) -> List[Dict[str, list]]:
        return self._observe()

    def step(self, actions: List[int]):
        self.steps = [s + 1 for s in self.steps]
        dones = [s >= self.horizon for s in self.steps]
        self.steps = [0 if d else s for s, d in zip(self.steps, dones)]
        return self._observe(), [float(a == 1) for a in actions], dones


def evaluate(agent: Agent, env: ParallelEnv, episodes: int) -> Dict[str, float]:
    obss, returns, finished = env.reset(), [0.0] * env.num_envs, []
    while len(finished) < episodes:
        obss, rewards, dones = env.step(agent.get_actions(obss))
        agent.analyze_feedbacks(rewards, dones)
        for i, (reward, done) in enumerate(zip(rewards, dones)):
            returns[i] += reward
            if done:
                finished.append(returns[i])
                returns[i] = 0.0
    return {"episodes": len(finished), "return": sum(finished) / len(finished)}


def main() -> None:
    trained = ACModel(12, 3)
    agent = Agent(ACModel(12, 3), trained.state_dict(), num_envs=4)
    print(evaluate(agent, ParallelEnv(4, 12, horizon=5), episodes=6))


if __name__ == "__main__":
    main()
