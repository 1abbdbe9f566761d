package conformance

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// dump writes everything that can be reached from a value, unexported fields as well, so that two values can be compared whatever
// they are made of. What a pointer points to counts, and not where it points; nil and empty are different.
func dump(v any) string {
	var s strings.Builder
	write(&s, reflect.ValueOf(v), 0)
	return s.String()
}

// maxDepth ends the walk in a value that contains itself.
const maxDepth = 40

// opaque are types of which a part does not belong to their value: where a time zone is kept, and how a number was last printed.
var opaque = map[reflect.Type]func(reflect.Value) string{
	reflect.TypeFor[time.Location](): func(reflect.Value) string { return "" },
	reflect.TypeFor[resource.Quantity](): func(v reflect.Value) string {
		return fmt.Sprint(v.FieldByName("i"), v.FieldByName("Format"))
	},
}

func write(s *strings.Builder, v reflect.Value, depth int) {
	if !v.IsValid() {
		s.WriteString("nil")
		return
	}
	if f := opaque[v.Type()]; f != nil || depth > maxDepth {
		if f != nil {
			s.WriteString(f(v))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		write(s, v.Elem(), depth+1)
	case reflect.Struct:
		s.WriteString("{")
		for i := range v.NumField() {
			s.WriteString(v.Type().Field(i).Name + ":")
			write(s, v.Field(i), depth+1)
			s.WriteString(" ")
		}
		s.WriteString("}")
	case reflect.Slice, reflect.Array:
		writeList(s, v, depth)
	case reflect.Map:
		writeMap(s, v, depth)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
	default:
		fmt.Fprint(s, v)
	}
}

func writeList(s *strings.Builder, v reflect.Value, depth int) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		s.WriteString("nil")
		return
	}
	s.WriteString("[")
	for i := range v.Len() {
		write(s, v.Index(i), depth+1)
		s.WriteString(" ")
	}
	s.WriteString("]")
}

func writeMap(s *strings.Builder, v reflect.Value, depth int) {
	if v.IsNil() {
		s.WriteString("nil")
		return
	}
	var entries []string
	for it := v.MapRange(); it.Next(); {
		var e strings.Builder
		write(&e, it.Key(), depth+1)
		e.WriteString("=")
		write(&e, it.Value(), depth+1)
		entries = append(entries, e.String())
	}
	slices.Sort(entries)
	s.WriteString("map[" + strings.Join(entries, " ") + "]")
}
