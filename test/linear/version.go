package linear

// Version reads an object that others write unseen; its answer is the number of the version, which grows with each write.
type Version struct{ Name string }

// VersionOf is the object that a Version is of.
func VersionOf(input any) string { return input.(Version).Name }

// StepVersion is the model: who looks sees no older version than any look that had ended before.
func StepVersion(s int64, _, answer any) []int64 {
	if now, ok := answer.(int64); ok && now >= s {
		return []int64{now}
	}
	return nil
}
