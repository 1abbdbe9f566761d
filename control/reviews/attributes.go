package reviews

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// attributes are what the authorizer would get if the request that is asked about were made.
func attributes(u user.Info, spec *authorizationv1.SelfSubjectAccessReviewSpec) (authorizer.AttributesRecord, error) {
	if path := spec.NonResourceAttributes; path != nil {
		return authorizer.AttributesRecord{User: u, Verb: path.Verb, Path: path.Path}, nil
	}
	r := spec.ResourceAttributes
	asked := authorizer.AttributesRecord{
		User: u, Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group, APIVersion: r.Version,
		Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, ResourceRequest: true,
	}
	var err error
	asked.FieldSelectorRequirements, err = selected(r.FieldSelector)
	return asked, err
}

// selected are the requirements of a field selector. The rules know only those that compare with one
// value. To leave another one out selects more, so that nothing more is allowed.
func selected(s *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if s == nil {
		return nil, nil
	}
	if s.RawSelector != "" {
		parsed, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, fmt.Errorf("while reading spec.resourceAttributes.fieldSelector: %w", err)
		}
		return parsed.Requirements(), nil
	}
	operators := map[metav1.FieldSelectorOperator]selection.Operator{
		metav1.FieldSelectorOpIn: selection.Equals, metav1.FieldSelectorOpNotIn: selection.NotEquals,
	}
	var all fields.Requirements
	for _, r := range s.Requirements {
		if operator, ok := operators[r.Operator]; ok && len(r.Values) == 1 {
			all = append(all, fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]})
		}
	}
	return all, nil
}
