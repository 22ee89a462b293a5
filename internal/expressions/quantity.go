package expressions

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// maxQuantity is the greatest length of a quantity, in bytes, and maxExponent the greatest exponent. Kubernetes rounds
// 1e-2147483640 digit by digit.
const maxQuantity, maxExponent = 40, 30

// ParseQuantity reads a quantity of Kubernetes. Texts of others must not be read by anything else: Kubernetes has no
// limit of the exponent.
func ParseQuantity(text string) (resource.Quantity, error) {
	if len(text) > maxQuantity {
		return resource.Quantity{}, fmt.Errorf("the quantity has %d bytes, more than the limit of %d", len(text), maxQuantity)
	}
	if at := strings.LastIndexAny(text, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(text[at+1:])
		if err == nil && (exponent > maxExponent || exponent < -maxExponent) {
			return resource.Quantity{}, fmt.Errorf("the exponent of the quantity %q is not from -%d to %d",
				text, maxExponent, maxExponent)
		}
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("reading a quantity: %w", err)
	}
	return quantity, nil
}

// celQuantity implements the function quantity of Kubernetes.
func celQuantity(args ...ref.Val) ref.Val {
	text, ok := args[0].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	quantity, err := ParseQuantity(string(text))
	if err != nil {
		return types.WrapErr(err)
	}
	return apiservercel.Quantity{Quantity: &quantity}
}

// celIsQuantity implements the function isQuantity of Kubernetes: whether the function quantity takes a text.
func celIsQuantity(args ...ref.Val) ref.Val {
	text, ok := args[0].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	_, err := ParseQuantity(string(text))
	return types.Bool(err == nil)
}
