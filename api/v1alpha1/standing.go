package v1alpha1

// The conditions that objects of all kinds have, by the rules of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus): they tell tools that know
// none of the kinds how an object is.
const (
	// ConditionReady is True while the object is as its newest spec declares it, and serves.
	ConditionReady = "Ready"
	// ConditionReconciling is True while Holdfast works on that, or waits for something that comes by itself. Otherwise it is absent.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while a user has to act. Otherwise it is absent.
	ConditionStalled = "Stalled"
)
