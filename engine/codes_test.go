package engine

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCodesPage_isFresh(t *testing.T) {
	have, err := os.ReadFile("../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(CodesPage(), string(have)); diff != "" {
		t.Errorf("docs/reference/events.md is not what codes.go says: run 'make generate'\n%s", diff)
	}
}

func TestCodes_areListedOnce(t *testing.T) {
	seen := map[Code]bool{}
	for _, c := range Codes() {
		if seen[c.Code] || c.Object == "" || c.Meaning == "" {
			t.Errorf("code %s is listed twice or not explained", c.Code)
		}
		seen[c.Code] = true
	}
}
