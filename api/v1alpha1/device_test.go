package v1alpha1

import "testing"

// Whatever a device says or does not say of itself: only one that says that it is available can be
// given to anybody.
func TestDevice_Taken(t *testing.T) {
	for want, d := range map[string]Device{
		"":                         {Availability: DeviceAvailable},
		"it is not empty":          {Availability: DeviceUnavailable},
		"it is not empty either":   {Reasons: []string{"it is not empty either."}},
		"is read-only; is mounted": {Availability: DeviceUnavailable, Reasons: []string{"is read-only", "is mounted"}},
	} {
		if got := d.Taken(); got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
}
