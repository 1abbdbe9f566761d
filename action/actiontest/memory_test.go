package actiontest

import "testing"

func TestMemory(t *testing.T) {
	m := NewMemory()
	RunStore(t, m, m)
}
