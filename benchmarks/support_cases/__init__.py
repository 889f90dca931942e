"""Support cases: what invented customers wrote to support, and questions with the messages that answer them.

A case is a customer with several conversations over months. They hold what makes recall hard: numbers that
differ in two digits swapped, the same trouble twice, values that change, answers that mean nothing without
the question before them, small talk, and offers of the agent that the customer never took.

- `material/*.txt`: what was written, in a form that is easy to write; `generate` describes it.
- `data/en.json`, `data/zh.json`: the cases made from it, which `cases.load` reads. Write them again with
  `python -m benchmarks.support_cases.generate`; no model takes part in it.

A data file is a list of customers. A customer has `customer_id`, `language` ("en" or "zh"), `domain`,
`part`, `conversations` and `questions`.

- A conversation: `conversation_id`, `subject`, `messages`; a message: `message_id`, `role` ("customer" or
  "agent"), `at` (ISO 8601 with an offset), `text`. Both are in the order of time.
- A question: `question_id`, `customer_id`, `text`, `language`, `category`, `evidence` (ids of the messages
  that answer it) and, where there is something to say, `since` and `until` (days, both inclusive),
  `identifier`, `lures`, `absent`, `is_far`. `cases.Question` says what they mean, `cases.CATEGORIES` what the
  categories are.

Evidence is always the customer's own messages. Constants are tuned on the customers of part "tune" and shown
on those of "held_out"; the halves have the same languages, and the same categories up to a question or two.
"""
