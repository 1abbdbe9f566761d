//go:generate go run ../internal/apidoc ../schema ../../docs/reference/api

// Package crd holds the CustomResourceDefinitions of the holdfast.io kinds, as generated from
// package v1alpha1.
package crd

import (
	"embed"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// kubernetesAlone are the kinds that Holdfast's own API servers do not serve.
var kubernetesAlone = []string{"Term"}

// All returns the definitions of all kinds that both homes have, ordered by name. The caller may
// change them.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := Kubernetes()
	return slices.DeleteFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return slices.Contains(kubernetesAlone, d.Spec.Names.Kind)
	}), err
}

// Kubernetes returns the definitions of all kinds that a Kubernetes cluster gets, ordered by name.
// The caller may change them.
func Kubernetes() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("while reading %s: %w", entry.Name(), err)
		}
		all = append(all, crd)
	}
	return all, nil
}
