package access

// Labels are those of the objects that the control plane makes for itself.
func Labels() map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "holdfast", "app.kubernetes.io/component": "control-plane",
		"app.kubernetes.io/managed-by": "holdfast",
	}
}
