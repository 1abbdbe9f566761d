package main

import (
	"strings"
	"testing"
)

// TestTell: a run ends with what failed, and with why, whether the tests say so before they fail or after; one that passes as it was.
func TestTell(t *testing.T) {
	const after = "\nWhat failed:\n"
	for _, test := range []struct{ name, in, want string }{
		{"good", "=== RUN   TestA\n    a_test.go:3: fine\n--- PASS: TestA (0.00s)\nPASS\nok  \tx\t0.1s\n", ""},
		{
			"quiet", "noise\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\n        a_test.go:3: bad\nFAIL\nFAIL\tx\t0.1s\nnoise\n",
			after + "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\n        a_test.go:3: bad\nFAIL\tx\t0.1s\n",
		},
		{
			"verbose", "=== RUN   TestA\n=== PAUSE TestA\n=== RUN   TestB\n    b_test.go:3: fine\n--- PASS: TestB (0.00s)\n=== CONT  TestA\n    a_test.go:4: bad\nnoise\n" +
				"--- FAIL: TestA (0.00s)\nFAIL\n",
			after + "--- FAIL: TestA (0.00s)\n    a_test.go:4: bad\n",
		},
		{"panic", "panic: oh\n\ngoroutine 1\nFAIL\tx\t0.1s\nok  \ty\t0.1s\n", after + "panic: oh\nFAIL\tx\t0.1s\n"},
		{
			"long", "--- FAIL: TestA (0.00s)\n" + strings.Repeat("    a_test.go:3: 0123456789\n", 100),
			after + "--- FAIL: TestA (0.00s)\n" + strings.Repeat("    a_test.go:3: 0123456789\n", 100)[28*100-maxSaid:],
		},
	} {
		var out strings.Builder
		if err := tell(strings.NewReader(test.in), &out); err != nil || out.String() != test.in+test.want {
			t.Errorf("%s: %v, %q\nwant %q", test.name, err, out.String(), test.in+test.want)
		}
	}
}
