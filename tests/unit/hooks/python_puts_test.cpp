#include "hooks/inprocess/source/python_puts.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

// "kept['a'] <- v; kept <- *w": what a statement puts where; a star before what has the entries in it.
std::string told(std::string_view statement) {
  std::string text;
  for (const ContainerPut& put : puts_in(statement)) {
    text += (text.empty() ? "" : "; ") + put.container + (put.key.empty() ? "" : "[" + put.key + "]") + " <- " +
            (put.entries ? "*" : "") + put.value;
  }
  return text;
}

TEST_CASE("Methods of lists, sets and queues put one value") {
  CHECK(told("scores.append(model(x, y)[0])") == "scores <- model(x, y)[0]");
  CHECK(told("self.kept.appendleft(x)") == "self.kept <- x");
  CHECK(told("seen.add(x)") == "seen <- x");
  CHECK(told("self.states.insert(len(self.states), state)") == "self.states <- state");
  CHECK(told("queue.put(x.cpu(), block=True)") == "queue <- x.cpu()");
  CHECK(told("queue.put_nowait((step, x))") == "queue <- (step, x)");
  CHECK(told("if wanted: kept.append(x)") == "kept <- x");
  CHECK(told("layer.register_forward_hook(lambda m, i, o: kept.append(o.cpu()))") == "kept <- o.cpu()");
  CHECK(told("[kept.append(x) for x in batch]") == "kept <- x");
  CHECK(told("super().append(x)") == "self <- x");
  CHECK(told("out['a.append(b)'].append(x)") == "out['a.append(b)'] <- x");
}

TEST_CASE("A list takes in what another one has") {
  CHECK(told("kept.extend([a, f(b, c)])") == "kept <- a; kept <- f(b, c)");
  CHECK(told("kept.extend((a,))") == "kept <- a");
  CHECK(told("kept.extend(x.cpu() for x in batch)") == "kept <- x.cpu()");
  CHECK(told("kept.extend([x.cpu() for x in batch])") == "kept <- x.cpu()");
  CHECK(told("out['hyp'].extend(torch.stack(parts, 1))") == "out['hyp'] <- *torch.stack(parts, 1)");
  CHECK(told("kept.extend(values)") == "kept <- *values");
  CHECK(told("kept.extend([a, *rest])") == "kept <- a; kept <- *rest");
  CHECK(told("self.kept += [x]") == "self.kept <- x");
  CHECK(told("self.kept += (x,)") == "self.kept <- x");
  CHECK(told("self.kept += x, y") == "self.kept <- x; self.kept <- y");
  CHECK(told("kept += [f(x) for x in batch]") == "kept <- f(x)");
  CHECK(told("kept += list(values)") == "kept <- *list(values)");
}

TEST_CASE("Entries are stored by assignment, one or several") {
  CHECK(told("grids[height, 'a]'] = made[None]") == "grids[height, 'a]'] <- made[None]");
  CHECK(told("found = self.tables[(a, b)] = build(a, size=b)") == "self.tables[(a, b)] <- build(a, size=b)");
  CHECK(told("a[k], self.b[k] = x, y") == "a[k] <- x; self.b[k] <- y");
  CHECK(told("optimizer.state[order[k]]['step'] = x") == "optimizer.state[order[k]]['step'] <- x");
  CHECK(told("kept.__setitem__(k, x)") == "kept[k] <- x");
}

TEST_CASE("Dictionaries take in entries by methods and operators") {
  CHECK(told("kept.setdefault('a', x)") == "kept['a'] <- x");
  CHECK(told("row = kept.setdefault(k, x).to(d)") == "kept[k] <- x");
  CHECK(told("kept.setdefault(k, []).append(x)") == "kept[k] <- []; kept[k] <- x");
  CHECK(told("batch.update({'a': x, k: f(y, z)})") == "batch['a'] <- x; batch[k] <- f(y, z)");
  CHECK(told("batch.update(a=x, b=y)") == "batch['a'] <- x; batch['b'] <- y");
  CHECK(told("batch.update(extra, b=y)") == "batch <- *extra; batch['b'] <- y");
  CHECK(told("batch.update(**extra)") == "batch <- *extra");
  CHECK(told("batch.update(dict(a=x))") == "batch['a'] <- x");
  CHECK(told("batch |= {'a': x, **more}") == "batch['a'] <- x; batch <- *more");
  CHECK(told("batch |= dict(a=x)") == "batch['a'] <- x");
  CHECK(told("batch |= extra") == "batch <- *extra");
  CHECK(told("batch.update({k: v.cpu() for k, v in extra.items()})") == "batch[k] <- v.cpu()");
  CHECK(told("optimizer.state[p].update(named[number])") == "optimizer.state[p] <- *named[number]");
}

TEST_CASE("Numbers, tensors and comparisons are no containers") {
  CHECK(told("total += loss").empty());
  CHECK(told("total += (a + b)").empty());
  CHECK(told("total += loss.item() * len(x)").empty());
  CHECK(told("mask |= a > b").empty());
  CHECK(told("loss = a.add(b)").empty());
  CHECK(told("torch.add(a, b)").empty());
  CHECK(told("meter.update(loss.item(), 3)").empty());
  CHECK(told("x = grids[key]").empty());
  CHECK(told("if grids[key] == x: pass").empty());
  CHECK(told("grids[key] += 1").empty());
  CHECK(told("make(x)[key] = 1").empty());
  CHECK(told("grids[key].shape = 1").empty());
  CHECK(told("print('kept.append(x)')").empty());
  CHECK(told("kept.extend([])").empty());
  CHECK(told("f(a, key=kept[k])").empty());
}

TEST_CASE("A container is named without its subscripts") {
  CHECK(without_subscripts("self.pages[name]") == "self.pages");
  CHECK(container_name("self.pages[name]") == "pages");
  CHECK(container_name("kept") == "kept");
  CHECK(text_of_key("'mask'") == "mask");
  CHECK(text_of_key("mask").empty());
}

}  // namespace
}  // namespace devsan::hooks
