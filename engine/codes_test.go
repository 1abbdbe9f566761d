package engine

import "testing"

func TestCodes_areListedOnce(t *testing.T) {
	seen := map[Code]bool{}
	for _, c := range Codes() {
		if seen[c.Code] || c.Object == "" || c.Meaning == "" {
			t.Errorf("code %s is listed twice or not explained", c.Code)
		}
		seen[c.Code] = true
	}
}
