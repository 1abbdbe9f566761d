package plans

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldConflicts are the fields that an error is about because somebody else has applied them.
func FieldConflicts(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var causes []metav1.StatusCause
	for _, c := range status.Status().Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			causes = append(causes, c)
		}
	}
	return causes
}

// ManagerIn is whose field a cause of a conflict is about.
func ManagerIn(c metav1.StatusCause) string {
	_, rest, _ := strings.Cut(c.Message, `"`)
	manager, _, _ := strings.Cut(rest, `"`)
	return manager
}

// ConflictsWith says whether all fields that an error is about were applied by one manager, as by another program in
// its name.
func ConflictsWith(err error, manager string) bool {
	causes := FieldConflicts(err)
	foreign := func(c metav1.StatusCause) bool { return ManagerIn(c) != manager }
	return len(causes) > 0 && !slices.ContainsFunc(causes, foreign)
}
