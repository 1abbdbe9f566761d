package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		old, now, without string
		same, memory      bool
		want              string
	}{
		"the same in another order": {old: `{"a":1}` + "\n" + `{"a":2}`, now: `{"a":2}` + "\n" + `{"a":1}`, same: true, want: "1 tests made the same 2 plans"},
		"one more":                  {old: `{"a":1}`, now: `{"a":1}` + "\n" + `{"a":1}`, want: "1 plans, now 2"},
		"a value":                   {old: `{"a":[{"b":1}]}`, now: `{"a":[{"b":2}]}`, want: "1 tests made other plans"},
		"a value that is left out":  {old: `{"a":[{"b":1,"c":1}]}`, now: `{"a":[{"b":2,"c":1}]}`, without: "b", same: true, want: "1 tests made the same 1 plans"},
		"the leader's memory": {
			old: `{"metadata":{"name":"d"},"spec":{"parameters":{"a":"1","b":"2"}},"r":"its parameters change (a, b), x"}`,
			now: `{"metadata":{"name":"d","annotations":{"memory.holdfast.io/b":"2"}},"spec":{"parameters":{"a":"1"}},` +
				`"r":"its parameters change (a), the leader's memory of it changes (b), x"}`,
			memory: true, same: true, want: "1 tests made the same 1 plans",
		},
		"the leader's memory, alone": {
			old:    `{"r":"its parameters change (b)"}`,
			now:    `{"r":"the leader's memory of it changes (b)"}`,
			memory: true, same: true,
		},
		"another memory": {
			old:    `{"metadata":{},"spec":{"parameters":{"b":"2"}}}`,
			now:    `{"metadata":{"annotations":{"memory.holdfast.io/b":"3"}},"spec":{"parameters":{}}}`,
			memory: true, want: "1 tests made other plans",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := written(t, test.old), written(t, test.now)
			var out strings.Builder
			same, err := compare(&out, before, after, form{strings.Split(test.without, ","), test.memory}, 3)
			if err != nil || same != test.same || !strings.Contains(out.String(), test.want) {
				t.Errorf("same %v, error %v:\n%s\nwant %v with %q", same, err, &out, test.same, test.want)
			}
		})
	}
	if _, err := compare(&strings.Builder{}, t.TempDir(), t.TempDir(), form{}, 3); err == nil {
		t.Error("no plans are taken for the same plans")
	}
}

func written(t *testing.T, plans string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "TestX.jsonl"), []byte(plans+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
