package v1alpha1

import (
	"maps"
	"slices"
)

// Equal says whether two specs say the same; what is empty and what is missing are the same. It is what
// equality.Semantic.DeepEqual says, without reflection: a leader compares thousands in each orchestration.
func (s *DaemonSpec) Equal(o *DaemonSpec) bool {
	return s.Cluster == o.Cluster && s.Type == o.Type && s.ID == o.ID && s.Host == o.Host && s.State == o.State &&
		slices.Equal(s.Command, o.Command) && slices.EqualFunc(s.Files, o.Files, DaemonFile.Equal) &&
		slices.Equal(s.Devices, o.Devices) && maps.Equal(s.Parameters, o.Parameters) &&
		s.StopTimeout == o.StopTimeout && s.OnRemoval == o.OnRemoval && s.StopOrder == o.StopOrder
}

// Equal says whether two files are the same.
func (f DaemonFile) Equal(o DaemonFile) bool {
	return f.Path == o.Path && slices.EqualFunc(f.Sources, o.Sources, FileSource.equal)
}

func (s FileSource) equal(o FileSource) bool { return same(s.Text, o.Text) && same(s.Secret, o.Secret) }

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
