package agent

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestLockedOut: what the servers do not explain is explained, once, and nothing else is.
func TestLockedOut(t *testing.T) {
	bare := apierrors.NewUnauthorized("Unauthorized")
	err := lockedOut(bare)
	if !errors.Is(err, bare) || !strings.Contains(err.Error(), "holdfast ca rotate") || !strings.Contains(err.Error(), joinAgain) {
		t.Errorf("got %v", err)
	}
	for _, told := range []error{err, apierrors.NewUnauthorized("host h was deleted: start its agent with '" + joinAgain + "'"), errors.New("refused"), nil} {
		if got := lockedOut(told); !errors.Is(got, told) || told != nil && got.Error() != told.Error() {
			t.Errorf("%v became %v", told, got)
		}
	}
}
