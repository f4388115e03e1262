int devsan_test_nothing;
