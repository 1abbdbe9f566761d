package bare_test

import (
	"testing"

	"github.com/holdfast-storage/holdfast/engine/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{Store: newStore(t, "s1"), World: newWorld(t)})
}
