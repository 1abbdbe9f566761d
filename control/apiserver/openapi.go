package apiserver

import (
	"reflect"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitions returns the OpenAPI definitions of the CRD server's own kinds and of the core kinds. The library brings the
// former as generated code. The latter are derived from the Go types, which carry everything that is needed: names and
// merge keys in tags, descriptions in SwaggerDoc.
func definitions(scheme *runtime.Scheme) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := openapi.GetOpenAPIDefinitions(ref)
		for _, t := range scheme.AllKnownTypes() {
			describe(t, ref, all)
		}
		return all
	}
}

// modelNamer is implemented by all types of the Kubernetes API.
type modelNamer interface{ OpenAPIModelName() string }

// modelName is the name of a struct's definition.
func modelName(t reflect.Type) (string, bool) {
	if t.Kind() != reflect.Struct {
		return "", false
	}
	namer, ok := reflect.Zero(t).Interface().(modelNamer)
	if !ok {
		return "", false
	}
	return namer.OpenAPIModelName(), true
}

// describe adds the definition of a struct, and of the structs that it is made of, to all.
func describe(t reflect.Type, ref common.ReferenceCallback, all map[string]common.OpenAPIDefinition) {
	name, ok := modelName(t)
	if _, done := all[name]; done || !ok {
		return
	}
	all[name] = common.OpenAPIDefinition{} // Ends the recursion of a type that contains itself.
	d := &definition{ref: ref, all: all, docs: docs(t)}
	d.schema.Type = spec.StringOrArray{"object"}
	d.schema.Description = d.docs[""]
	d.schema.Properties = map[string]spec.Schema{}
	d.fields(t)
	all[name] = common.OpenAPIDefinition{Schema: d.schema, Dependencies: d.dependencies}
}

func docs(t reflect.Type) map[string]string {
	documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
	if !ok {
		return nil
	}
	return documented.SwaggerDoc()
}

type definition struct {
	ref          common.ReferenceCallback
	all          map[string]common.OpenAPIDefinition
	docs         map[string]string
	schema       spec.Schema
	dependencies []string
}

func (d *definition) fields(t reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner := &definition{ref: d.ref, all: d.all, docs: docs(f.Type), schema: d.schema}
			inner.fields(f.Type)
			d.schema = inner.schema
			continue
		}
		property := d.property(f.Type)
		property.Description = d.docs[name]
		mergeKeys(&property, f.Tag)
		d.schema.Properties[name] = property
		if !strings.Contains(options, "omitempty") {
			d.schema.Required = append(d.schema.Required, name)
		}
	}
}

// mergeKeys tells client-side apply and server-side apply how a list is merged.
func mergeKeys(property *spec.Schema, tag reflect.StructTag) {
	key := tag.Get("patchMergeKey")
	if key == "" || tag.Get("patchStrategy") != "merge" {
		return
	}
	property.AddExtension("x-kubernetes-list-type", "map")
	property.AddExtension("x-kubernetes-list-map-keys", []any{key})
	property.AddExtension("x-kubernetes-patch-merge-key", key)
	property.AddExtension("x-kubernetes-patch-strategy", "merge")
}

func (d *definition) property(t reflect.Type) spec.Schema {
	if name, ok := modelName(t); ok {
		describe(t, d.ref, d.all)
		d.dependencies = append(d.dependencies, name)
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: d.ref(name), Default: map[string]any{}}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		schema := d.property(t.Elem())
		schema.Default = nil
		return schema
	case reflect.Map:
		values := d.property(t.Elem())
		return *spec.MapProperty(&values)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return *spec.StrFmtProperty("byte")
		}
		items := d.property(t.Elem())
		list := spec.ArrayProperty(&items)
		list.AddExtension("x-kubernetes-list-type", "atomic")
		return *list
	case reflect.Bool:
		return *spec.BooleanProperty()
	case reflect.Int32:
		return *spec.Int32Property()
	case reflect.Int64, reflect.Int:
		return *spec.Int64Property()
	default:
		return *spec.StringProperty()
	}
}
