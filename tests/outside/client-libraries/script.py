"""Prints the script of the model that the suite talks to (docs/scripted-model.md)."""

import json

STEPS = [
    ({"model": "never"}, [{"text": "Words alone."}]),
    ({"prompt": "What is in this folder?"}, [{"text": ["A README ", "and a test."]}]),
    ({"prompt": "How many files are there?", "results": 1}, [{"text": ["There is ", "one."]}, {"usage": {"input": 20, "output": 2}}]),
    ({"prompt": "How many files are there?"}, [{"text": "Let me look."}, {"toolCall": {"name": "bash", "arguments": {"command": "ls | wc -l"}}}, {"usage": {"input": 10, "output": 5}}]),
    ({"prompt": "Throw the coin three times.", "results": 1, "resultIsError": False, "resultContains": ", "}, [{"text": "It was thrown."}]),
    ({"prompt": "Throw the coin three times.", "results": 1, "resultIsError": True}, [{"text": "It could not be thrown."}]),
    ({"prompt": "Throw the coin three times.", "hasTool": "coin"}, [{"toolCall": {"name": "coin", "arguments": {"times": 3}}}]),
    ({"prompt": "Build the project.", "results": 1, "resultIsError": False}, [{"text": "It was built."}]),
    ({"prompt": "Build the project.", "results": 1, "resultContains": "not want"}, [{"text": "Then not."}]),
    ({"prompt": "Build the project."}, [{"toolCall": {"name": "bash", "arguments": {"command": "touch built"}}}]),
    ({"prompt": "Review the change in change.diff.", "hasTool": "submit_answer"}, [{"toolCall": {"name": "submit_answer", "arguments": {"verdict": "bad", "reasons": ["It divides by zero."]}}}]),
    ({"prompt": "Words first.", "hasTool": "submit_answer"}, [{"text": "Seven."}]),
    ({"promptContains": "by the tool submit_answer"}, [{"toolCall": {"name": "submit_answer", "arguments": {"answer": 7}}}]),
    ({"prompt": "Wait."}, [{"text": "Before."}, {"waitForFile": "gate"}, {"text": [" While", " away."]}]),
    ({"prompt": "Hang."}, [{"text": "Thinking"}, {"hang": True}]),
    ({"prompt": "Fail."}, [{"fail": {"message": "not that", "kind": "fatal"}}]),
    ({"prompt": "Count."}, [{"text": [f"{number} " for number in range(20000)]}]),
    ({"promptContains": ""}, [{"text": "Well."}]),
]

print(json.dumps({"allowOpenCalls": True, "steps": [{"when": when, "emit": emit} for when, emit in STEPS]}))
