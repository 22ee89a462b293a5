package addonapi_test

import (
	"math/rand"
	"reflect"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// random fills a value with pseudo-random content, every field of it, down to small lists and maps. Nil, empty and
// filled lists, maps and pointers all occur.
func random[T any](seed int64) *T {
	out := new(T)
	fill(reflect.ValueOf(out).Elem(), rand.New(rand.NewSource(seed)))
	return out
}

func fill(v reflect.Value, r *rand.Rand) {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(int64(r.Intn(1e9)), 0).UTC())))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), r)
		}
	case reflect.Pointer:
		if r.Intn(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), r)
		}
	case reflect.Slice:
		if n := r.Intn(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
			for i := range v.Len() {
				fill(v.Index(i), r)
			}
		}
	case reflect.Map:
		if n := r.Intn(4); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n - 1 {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(key, r)
				fill(value, r)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		if n := r.Intn(6); n > 0 {
			v.SetString("s" + strconv.Itoa(n))
		}
	case reflect.Bool:
		v.SetBool(r.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Intn(100)))
	case reflect.Uint8:
		v.SetUint(uint64(r.Intn(100)))
	default:
		panic("fill: " + v.Type().String())
	}
}

// shared returns the paths at which a and b, of any types, reach the same memory.
func shared(a, b any) []string {
	mine, found := map[uintptr]string{}, []string{}
	reach(reflect.ValueOf(a), "in", func(at uintptr, path string) { mine[at] = path })
	reach(reflect.ValueOf(b), "out", func(at uintptr, path string) {
		if other, ok := mine[at]; ok {
			found = append(found, path+" = "+other)
		}
	})
	return found
}

func reach(v reflect.Value, path string, visit func(uintptr, string)) {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			reach(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Pointer(), path)
			reach(v.Elem(), path, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i).Addr().Pointer(), path)
			reach(v.Index(i), path+"["+strconv.Itoa(i)+"]", visit)
		}
	case reflect.Map:
		if !v.IsNil() {
			visit(v.Pointer(), path)
		}
	default:
	}
}
