"""The operators that trainings call at every step, by the names of ATen's structs.

Every operator is wrapped, whether it stands here or not. The wrappers of these lie together, on a few pages: a seldom
called one costs as many misses as its code has cache lines and pages. What the target torch lacks is passed over.
"""

COMMON = frozenset("""
_adaptive_avg_pool2d _fused_rms_norm _local_scalar_dense _log_softmax _log_softmax_backward_data _reshape_alias
_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward _softmax
_softmax_backward_data _to_copy _unsafe_view add_Scalar add_Tensor add__Scalar add__Tensor addcdiv addcdiv_ addcmul
addcmul_ addmm addmm_ alias amax any arange arange_start argmax as_strided baddbmm bitwise_and_Tensor bmm cat chunk
clamp clamp_min clone contiguous conv2d convolution convolution_backward copy_ cos cross_entropy_loss cumsum detach
detach_ div_Scalar div_Tensor div__Scalar div__Tensor dropout embedding embedding_dense_backward empty_like
empty_memory_format empty_strided eq_Scalar eq_Tensor exp expand expand_as fill__Scalar flatten_using_ints full
full_like gather ge_Scalar gelu gelu_backward gt_Scalar index_Tensor index_put_ index_select item layer_norm
le_Scalar lerp__Scalar linear log log_softmax_int logical_and logical_not lt_Scalar masked_fill_Scalar
masked_fill__Scalar matmul max max_dim mean mean_dim mm mul_Scalar mul_Tensor mul__Scalar mul__Tensor narrow
native_batch_norm native_batch_norm_backward native_dropout native_dropout_backward native_layer_norm
native_layer_norm_backward ne_Scalar neg new_empty_strided new_zeros nll_loss nll_loss_backward nll_loss_forward
nll_loss_nd norm_ScalarOpt_dim ones ones_like permute pow_Scalar pow_Tensor_Scalar rand randint randn reciprocal
relu relu_ repeat reshape reshape_as resolve_conj resolve_neg result_type_Scalar rsqrt rsub_Scalar
scaled_dot_product_attention scatter__src scatter__value select_backward select_int sigmoid silu silu_backward sin
slice_Tensor slice_backward softmax_int split_Tensor split_with_sizes sqrt square squeeze squeeze_dim stack
sub_Scalar sub_Tensor sub__Tensor sum sum_IntList_out sum_dim_IntList t tanh tanh_backward threshold_backward
to_device to_dtype to_dtype_layout topk transpose_int tril triu unbind_int unsafe_split_Tensor unsqueeze unsqueeze_
view view_as where_ScalarOther where_self zero_ zeros zeros_like
""".split())
